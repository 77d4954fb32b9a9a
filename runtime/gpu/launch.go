//go:build cuda

package gpu

/*
#include "driver.h"
#include <string.h>

// CUlaunchConfig and CUlaunchAttribute of the driver API, CUDA 12: an attribute is
// its number, padded to 8 bytes, and a value of 64.
typedef struct {
	int id;
	int padding;
	union {
		unsigned char bytes[64];
		struct { unsigned int x, y, z; } cluster;
		int enabled;
		void *alignment;
	} value;
} attribute;

typedef struct {
	unsigned int grid[3], block[3];
	unsigned int shared;
	handle stream;
	attribute *attributes;
	unsigned int count;
} configuration;

_Static_assert(sizeof(attribute) == 72, "CUlaunchAttribute");
_Static_assert(offsetof(configuration, stream) == 32 && sizeof(configuration) == 56, "CUlaunchConfig");

int cuLaunchKernelEx(const configuration *configuration, handle function, void **parameters, void **extra);

typedef struct {
	unsigned int grid[3], block[3], cluster[3];
	unsigned int shared;
	int dependent;
} shape;

// Launches a kernel whose parameters lie in one buffer, which the driver copies.
static int launch(handle function, handle stream, const shape *shape, void *buffer, size_t size) {
	enum { CLUSTER_DIMENSION = 4, PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
	attribute attributes[2];
	configuration configuration;
	memset(&configuration, 0, sizeof configuration);
	memcpy(configuration.grid, shape->grid, sizeof shape->grid);
	memcpy(configuration.block, shape->block, sizeof shape->block);
	configuration.shared = shape->shared;
	configuration.stream = stream;
	configuration.attributes = attributes;
	memset(attributes, 0, sizeof attributes);
	if (shape->cluster[0] * shape->cluster[1] * shape->cluster[2] > 1) {
		attribute *a = &attributes[configuration.count++];
		a->id = CLUSTER_DIMENSION;
		a->value.cluster.x = shape->cluster[0];
		a->value.cluster.y = shape->cluster[1];
		a->value.cluster.z = shape->cluster[2];
	}
	if (shape->dependent) {
		attribute *a = &attributes[configuration.count++];
		a->id = PROGRAMMATIC_STREAM_SERIALIZATION;
		a->value.enabled = 1;
	}
	// CU_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE and _END.
	void *extra[] = {(void *)1, buffer, (void *)2, &size, (void *)0};
	return cuLaunchKernelEx(&configuration, function, NULL, size > 0 ? extra : NULL);
}

#cgo noescape launch
#cgo nocallback launch
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// Launch is how a kernel is launched. In each triple a zero of y or z stands for 1.
type Launch struct {
	Grid    [3]int // blocks
	Block   [3]int // threads of a block
	Shared  int    // bytes of dynamic shared memory of a block
	Cluster [3]int // blocks of a cluster; zero for no clusters

	// Dependent lets the kernel begin before the one ahead of it in the stream
	// has ended: it must call griddepcontrol.wait before it touches that one's
	// results.
	Dependent bool

	Args *Arguments // nil for none
}

// Launch adds a kernel to the stream's work, and to the graph during a capture.
// The arguments may be used again on return. It allocates nothing.
func (s *Stream) Launch(f *Function, l Launch) error {
	var shape C.shape
	if !dimensions(&shape.grid, l.Grid) || !dimensions(&shape.block, l.Block) || l.Shared < 0 ||
		l.Cluster != [3]int{} && !dimensions(&shape.cluster, l.Cluster) {
		return fmt.Errorf("launch kernel %q: grid %v, block %v, cluster %v, %d bytes of shared memory: not a shape",
			f.name, l.Grid, l.Block, l.Cluster, l.Shared)
	}
	shape.shared = C.uint(l.Shared)
	if l.Dependent {
		shape.dependent = 1
	}
	var data []byte
	if l.Args != nil {
		data = l.Args.data
	}
	result := C.launch(f.handle(), s.handle(), &shape, unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data)))
	if result != 0 {
		return fmt.Errorf("launch kernel %q with grid %v, block %v, cluster %v, %d bytes of shared memory: %w",
			f.name, l.Grid, l.Block, l.Cluster, l.Shared, check("cuLaunchKernelEx", result))
	}
	return nil
}

// dimensions puts a triple into C's and reports whether it is one.
func dimensions(out *[3]C.uint, triple [3]int) bool {
	if triple[0] < 1 || triple[1] < 0 || triple[2] < 0 {
		return false
	}
	for i, size := range triple {
		out[i] = C.uint(max(size, 1))
	}
	return true
}
