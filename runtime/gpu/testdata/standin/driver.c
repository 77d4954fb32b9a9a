/*
 * A stand-in for libcuda.so.1 on machines without a GPU: device memory is the
 * host's, the kernels of test.ptx are functions here, and work is done when it is
 * given. It holds the package to what the driver demands: a current context on
 * the calling thread, the layouts of the driver API's structs, the numbers of its
 * options. It shows nothing about a GPU.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_CONTEXT = 201, INVALID_PTX = 218,
	INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, LAUNCH_FAILED = 719, CAPTURE_INVALID = 900, INVALID_CLUSTER_SIZE = 912 };

#define MEMORY ((size_t)1 << 32)
#define SHARED 232448

static __thread void *current;
static int context, failed, retained;

#define ENTER do { if (current != &context) return INVALID_CONTEXT; if (failed) return failed; } while (0)

int cuInit(unsigned flags)
{
	const char *loading = getenv("CUDA_MODULE_LOADING"), *cache = getenv("CUDA_CACHE_PATH");
	if (flags != 0 || loading == NULL || strcmp(loading, "EAGER") != 0 || cache == NULL)
		return INVALID_VALUE;
	return 0;
}

int cuGetErrorName(int result, const char **name)
{
	static const struct { int result; const char *name; } names[] = {
		{INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"}, {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
		{INVALID_PTX, "CUDA_ERROR_INVALID_PTX"}, {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
		{LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"}, {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
	};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].result == result) {
			*name = names[i].name;
			return 0;
		}
	return INVALID_VALUE;
}

int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return index == 0 ? 0 : INVALID_DEVICE; }
int cuDeviceGetName(char *name, int size, int device) { (void)device; strncpy(name, "stand-in", size); return 0; }

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	(void)device;
	switch (attribute) {
	case 16: *value = 132; return 0;
	case 75: *value = 9; return 0;
	case 76: *value = 0; return 0;
	case 97: *value = SHARED; return 0;
	}
	return INVALID_VALUE;
}

int cuDevicePrimaryCtxRetain(void **out, int device) { (void)device; retained++; *out = &context; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return retained-- > 0 ? 0 : INVALID_CONTEXT; }
int cuCtxSetCurrent(void *c) { current = c; return 0; }

int cuMemGetInfo_v2(size_t *available, size_t *total) { ENTER; *available = *total = MEMORY; return 0; }

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	ENTER;
	if (bytes > MEMORY)
		return OUT_OF_MEMORY;
	*address = (uint64_t)aligned_alloc(256, (bytes + 255) & ~(size_t)255);
	return *address != 0 ? 0 : OUT_OF_MEMORY;
}

int cuMemFree_v2(uint64_t address) { ENTER; free((void *)address); return 0; }

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
	ENTER;
	*memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	return flags == 1 ? 0 : INVALID_VALUE;
}

int cuMemFreeHost(void *memory) { ENTER; free(memory); return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *s) { ENTER; (void)s; memcpy((void *)to, from, n); return 0; }
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *s) { ENTER; (void)s; memcpy(to, (void *)from, n); return 0; }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *s) { ENTER; (void)s; memcpy((void *)to, (void *)from, n); return 0; }
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void *s) { ENTER; (void)s; memset((void *)to, value, n); return 0; }

/* Streams, events. */

typedef struct node { void (*kernel)(const unsigned char *); unsigned char parameters[64]; struct node *next; } node;
typedef struct { node *first; size_t count; } graph;
typedef struct { graph *capture; } stream;

int cuStreamCreate(stream **s, unsigned flags) { ENTER; *s = calloc(1, sizeof **s); return flags == 1 ? 0 : INVALID_VALUE; }
int cuStreamDestroy_v2(stream *s) { ENTER; free(s); return 0; }
int cuStreamSynchronize(stream *s) { ENTER; return s->capture != NULL ? CAPTURE_INVALID : 0; }
int cuStreamQuery(stream *s) { ENTER; return s->capture != NULL ? CAPTURE_INVALID : 0; }
int cuStreamWaitEvent(stream *s, void *e, unsigned flags) { ENTER; return s != NULL && e != NULL && flags == 0 ? 0 : INVALID_VALUE; }
int cuEventCreate(void **e, unsigned flags) { ENTER; *e = malloc(1); return flags == 0 ? 0 : INVALID_VALUE; }
int cuEventDestroy_v2(void *e) { ENTER; free(e); return 0; }
int cuEventRecord(void *e, stream *s) { ENTER; return e != NULL && s != NULL ? 0 : INVALID_HANDLE; }
int cuEventSynchronize(void *e) { ENTER; return e != NULL ? 0 : INVALID_HANDLE; }
int cuEventElapsedTime(float *milliseconds, void *from, void *to) { ENTER; *milliseconds = 0.5f; return from != to ? 0 : INVALID_HANDLE; }

/* Modules, kernels. */

typedef struct { void (*kernel)(const unsigned char *); const char *name; int shared; } function;

static void add(const unsigned char *p)
{
	struct { float *a; float scale; float *b; int count; float *c; } args;
	memcpy(&args, p, sizeof args);
	for (int i = 0; i < args.count; i++)
		args.c[i] = args.a[i] + args.scale * args.b[i];
}

static void shared(const unsigned char *p)
{
	struct { int *out; int last; } args;
	memcpy(&args, p, sizeof args);
	*args.out = args.last;
}

static void empty(const unsigned char *p) { (void)p; }
static void fault(const unsigned char *p) { (void)p; failed = LAUNCH_FAILED; }

static function functions[] = {{add, "add", 48 << 10}, {shared, "shared", 48 << 10}, {empty, "empty", 48 << 10}, {empty, "empty_dependent", 48 << 10},
	{fault, "fault", 48 << 10}};

int cuModuleLoadDataEx(void **module, const char *image, unsigned count, int *options, void **values)
{
	ENTER;
	if (count != 2 || options[0] != 5 || options[1] != 6)
		return INVALID_VALUE;
	if (strstr(image, "fma.rn.f33") != NULL) {
		strncpy(values[0], "ptxas error   : Unexpected instruction types", (size_t)values[1]);
		return INVALID_PTX;
	}
	for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++)
		functions[i].shared = 48 << 10;
	*module = functions;
	return 0;
}

int cuModuleUnload(void *module) { ENTER; return module == functions ? 0 : INVALID_HANDLE; }

int cuModuleGetFunction(function **f, void *module, const char *name)
{
	ENTER;
	for (unsigned i = 0; module == functions && i < sizeof functions / sizeof *functions; i++)
		if (strcmp(functions[i].name, name) == 0) {
			*f = &functions[i];
			return 0;
		}
	return NOT_FOUND;
}

int cuFuncGetAttribute(int *value, int attribute, function *f) { ENTER; (void)f; *value = attribute == 4 ? 8 : 0; return 0; }

int cuFuncSetAttribute(function *f, int attribute, int value)
{
	ENTER;
	if (attribute != 8 || value > SHARED)
		return INVALID_VALUE;
	f->shared = value;
	return 0;
}

struct attribute { uint32_t id, pad; uint32_t value[16]; };
struct configuration { uint32_t grid[3], block[3], shared; stream *stream; struct attribute *attributes; uint32_t count; };

int cuLaunchKernelEx(const struct configuration *c, function *f, void **parameters, void **extra)
{
	ENTER;
	unsigned char buffer[64] = {0};
	for (int i = 0; i < 3; i++)
		if (c->grid[i] == 0 || c->block[i] == 0)
			return INVALID_VALUE;
	if (parameters != NULL || c->shared > (uint32_t)f->shared || c->stream == NULL)
		return INVALID_VALUE;
	for (uint32_t i = 0; i < c->count; i++) {
		const struct attribute *a = &c->attributes[i];
		switch (a->id) {
		case 4:
			for (int j = 0; j < 3; j++)
				if (a->value[j] == 0 || c->grid[j] % a->value[j] != 0)
					return INVALID_CLUSTER_SIZE;
			break;
		case 6:
			if (a->value[0] != 1)
				return INVALID_VALUE;
			break;
		default:
			return INVALID_VALUE;
		}
	}
	if (extra != NULL) {
		if (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != NULL || *(size_t *)extra[3] > sizeof buffer)
			return INVALID_VALUE;
		memcpy(buffer, extra[1], *(size_t *)extra[3]);
	}
	if (c->stream->capture == NULL) {
		f->kernel(buffer);
		return 0;
	}
	node *n = calloc(1, sizeof *n), **last = &c->stream->capture->first;
	n->kernel = f->kernel;
	memcpy(n->parameters, buffer, sizeof buffer);
	while (*last != NULL)
		last = &(*last)->next;
	*last = n;
	c->stream->capture->count++;
	return 0;
}

/* Graphs. An executable is a copy. */

int cuStreamBeginCapture_v2(stream *s, int mode)
{
	ENTER;
	if (s->capture != NULL || mode != 1)
		return INVALID_VALUE;
	s->capture = calloc(1, sizeof *s->capture);
	return 0;
}

int cuStreamEndCapture(stream *s, graph **g)
{
	ENTER;
	*g = s->capture;
	s->capture = NULL;
	return *g != NULL ? 0 : INVALID_VALUE;
}

int cuGraphGetNodes(graph *g, void *nodes, size_t *count) { ENTER; *count = g->count; return nodes == NULL ? 0 : INVALID_VALUE; }

int cuGraphInstantiateWithFlags(graph **x, graph *g, unsigned long long flags)
{
	ENTER;
	*x = calloc(1, sizeof **x);
	node **last = &(*x)->first;
	for (node *n = g->first; n != NULL; n = n->next) {
		*last = malloc(sizeof *n);
		**last = *n;
		(*last)->next = NULL;
		last = &(*last)->next;
	}
	return flags == 0 ? 0 : INVALID_VALUE;
}

int cuGraphLaunch(graph *x, stream *s)
{
	ENTER;
	for (node *n = x->first; s != NULL && n != NULL; n = n->next)
		n->kernel(n->parameters);
	return 0;
}

int cuGraphDestroy(graph *g)
{
	ENTER;
	for (node *n = g->first, *next; n != NULL; n = next) {
		next = n->next;
		free(n);
	}
	free(g);
	return 0;
}

int cuGraphExecDestroy(graph *x) { return cuGraphDestroy(x); }

/* A tensor map here is the arguments, as far as the test looks. */
int cuTensorMapEncodeTiled(uint64_t *map, int type, uint32_t rank, uint64_t base, const uint64_t *dimensions, const uint64_t *strides,
	const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill)
{
	if (((uintptr_t)map & 63) != 0 || base % 16 != 0 || steps[0] != 1 || interleave != 0 || promotion != 2 || fill != 0)
		return INVALID_VALUE;
	map[0] = type, map[1] = rank, map[2] = base, map[3] = swizzle;
	for (uint32_t i = 0; i < rank && i < 4; i++) {
		map[4 + i] = dimensions[i];
		map[8 + i] = i + 1 < rank ? strides[i] : 0;
		map[12 + i] = box[i];
	}
	return 0;
}
