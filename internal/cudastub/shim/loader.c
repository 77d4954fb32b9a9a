/*
 * The part of libcuda.a that is not a trampoline: it finds the driver when it is
 * asked to and points the trampolines at it. Until then, and for every function
 * that the driver lacks, a trampoline returns CUDA_ERROR_STUB_LIBRARY (34).
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define STUB_LIBRARY 34

/* From the generated assembly: names, each ended by a zero byte, the list by an
 * empty one; and as many slots. */
extern const char slipway_cuda_names[];
extern void *slipway_cuda_slots[];

static char problem[512];

/*
 * gorgonia.org/cu calls cuInit while the program starts and ends the process when
 * that fails. A program must be able to say that there is no driver in its own
 * words, or not to need one, so nothing is done here.
 */
int cuInit(unsigned int flags)
{
	(void)flags;
	return 0;
}

/* Why slipway_cuda_initialize returned -1. */
const char *slipway_cuda_problem(void)
{
	return problem;
}

/*
 * Loads the driver and calls its cuInit. Returns that call's result, or -1 where
 * the library could not be loaded. To be called once, before any other function
 * of the driver, with the environment that the driver shall read.
 */
int slipway_cuda_initialize(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		snprintf(problem, sizeof problem, "%s", dlerror());
		return -1;
	}
	void **slot = slipway_cuda_slots;
	for (const char *name = slipway_cuda_names; *name != 0; name += strlen(name) + 1, slot++) {
		void *function = dlsym(library, name);
		if (function != NULL)
			*slot = function;
	}
	int (*initialize)(unsigned int) = (int (*)(unsigned int))dlsym(library, "cuInit");
	return initialize == NULL ? STUB_LIBRARY : initialize(0);
}
