package image

import "slices"

// serving lists the distributions that decide whether a model server starts,
// the most telling first, with the module that is imported where its name
// differs. They come first in a short description.
var serving = []struct{ name, module string }{
	{"torch", ""}, {"transformers", ""}, {"accelerate", ""}, {"jinja2", ""}, {"tokenizers", ""}, {"safetensors", ""},
	{"vllm", ""}, {"triton", ""}, {"flashinfer-python", "flashinfer"}, {"numpy", ""}, {"pillow", "PIL"},
	{"fastapi", ""}, {"uvicorn", ""}, {"aiohttp", ""}, {"torchvision", ""}, {"huggingface-hub", "huggingface_hub"},
	{"ninja", ""}, {"sentencepiece", ""}, {"tiktoken", ""}, {"protobuf", ""}, {"pyyaml", "yaml"}, {"requests", ""},
	{"setuptools", ""}, {"pip", ""}, {"pydantic", ""}, {"starlette", ""}, {"einops", ""}, {"kernels", ""},
	{"compressed-tensors", "compressed_tensors"}, {"flash-attn", "flash_attn"}, {"xformers", ""}, {"bitsandbytes", ""},
	{"sglang", ""}, {"httpx", ""}, {"flask", ""}, {"scipy", ""}, {"regex", ""}, {"filelock", ""}, {"packaging", ""}, {"tqdm", ""},
	{"opencv-python", "cv2"}, {"psutil", ""}, {"wheel", ""},
}

// Serving returns the names of the distributions that decide whether a model
// server starts, the most telling first.
func Serving() []string {
	names := make([]string, len(serving))
	for i, d := range serving {
		names[i] = d.name
	}
	return names
}

// distributionOf returns the distribution that a well-known module comes from.
func distributionOf(module string) (name string, ok bool) {
	for _, d := range serving {
		if d.module == module || d.module == "" && d.name == module {
			return d.name, true
		}
	}
	return "", false
}

// programs are those that servers and their compilers start.
var programs = []string{"bash", "curl", "git", "gcc", "cc", "nvcc", "ninja", "pip", "nvidia-smi"}

// Programs returns the names of the programs that a description names.
func Programs() []string { return slices.Clone(programs) }
