/*
 * The functions of the CUDA driver API that gorgonia.org/cu does not have, as
 * far as this package calls them, and the loader that libcuda.a adds. Handles
 * are integers here: they are the driver's addresses, and Go's collector has
 * no business with them.
 */
#ifndef SLIPWAY_DRIVER_H
#define SLIPWAY_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef uintptr_t handle;

int slipway_cuda_initialize(void);
const char *slipway_cuda_problem(void);

int cuGetErrorName(int result, const char **name);

int cuMemHostAlloc(void **memory, size_t bytes, unsigned int flags);

int cuModuleLoadDataEx(handle *module, const void *image, unsigned int count, int *options, void **values);
int cuFuncSetAttribute(handle function, int attribute, int value);

int cuStreamQuery(handle stream);
int cuStreamBeginCapture_v2(handle stream, int mode);
int cuStreamEndCapture(handle stream, handle *graph);

int cuGraphGetNodes(handle graph, handle *nodes, size_t *count);
int cuGraphInstantiateWithFlags(handle *executable, handle graph, unsigned long long flags);
int cuGraphLaunch(handle executable, handle stream);
int cuGraphExecDestroy(handle executable);
int cuGraphDestroy(handle graph);

int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, uintptr_t base, const uint64_t *dimensions,
	const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle,
	int promotion, int fill);

#endif
