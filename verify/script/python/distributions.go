package python

import "strings"

// distributions names what provides a module that is called otherwise, by the
// module; the longest dotted name wins. Where several do, the usual one stands
// first. Source: the projects' own pages at the package index.
var distributions = map[string][]string{
	"attr":                 {"attrs"},
	"bs4":                  {"beautifulsoup4"},
	"Crypto":               {"pycryptodome"},
	"cupy":                 {"cupy-cuda12x", "cupy-cuda13x", "cupy"},
	"cv2":                  {"opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"},
	"dateutil":             {"python-dateutil"},
	"docx":                 {"python-docx"},
	"dotenv":               {"python-dotenv"},
	"faiss":                {"faiss-cpu", "faiss-gpu-cu12"},
	"fitz":                 {"pymupdf"},
	"fla":                  {"flash-linear-attention", "fla-core"},
	"flash_attn_interface": {"flash-attn-3"},
	"flashinfer":           {"flashinfer-python"},
	"git":                  {"gitpython"},
	"google.genai":         {"google-genai"},
	"google.generativeai":  {"google-generativeai"},
	"google.protobuf":      {"protobuf"},
	"grpc":                 {"grpcio"},
	"jwt":                  {"pyjwt"},
	"llama_cpp":            {"llama-cpp-python"},
	"magic":                {"python-magic"},
	"MySQLdb":              {"mysqlclient"},
	"onnxruntime":          {"onnxruntime", "onnxruntime-gpu"},
	"optimum.quanto":       {"optimum-quanto"},
	"OpenSSL":              {"pyopenssl"},
	"PIL":                  {"pillow"},
	"pkg_resources":        {"setuptools"},
	"psycopg2":             {"psycopg2-binary", "psycopg2"},
	"pynvml":               {"nvidia-ml-py", "pynvml"},
	"ruamel.yaml":          {"ruamel-yaml"},
	"serial":               {"pyserial"},
	"skimage":              {"scikit-image"},
	"sklearn":              {"scikit-learn"},
	"slugify":              {"python-slugify"},
	"socks":                {"pysocks"},
	"triton":               {"triton", "pytorch-triton"},
	"usb":                  {"pyusb"},
	"websocket":            {"websocket-client"},
	"yaml":                 {"pyyaml"},
	"zmq":                  {"pyzmq"},
	"_cffi_backend":        {"cffi"},
	"absl":                 {"absl-py"},
}

// sameName are modules whose distribution has their name, as servers and their
// code import them.
var sameName = setOf(`
	accelerate aiofiles aiohttp aiosqlite anthropic anyio apex aqlm attrs auto_gptq autoawq av awq awq_ext bitsandbytes
	blake3 boto3 botocore cachetools causal_conv1d cbor2 certifi cffi charset_normalizer click cloudpickle colorama
	compressed_tensors cryptography cython Cython dask datasets decord deep_ep deep_gemm diffusers dill diskcache docker
	editdistance einops evaluate exllamav2 exllamav3 fastapi filelock fire flash_attn flask flax frozenlist fsspec gevent
	gguf gptqmodel gradio gunicorn h11 h2 h5py hf_transfer hf_xet hqq httpcore httptools httpx huggingface_hub hypercorn
	idna imageio interegular IPython jax jaxlib jinja2 jiter joblib jsonschema kernels lark librosa liger_kernel litellm
	litestar llguidance lm_eval lmdb lmdeploy loguru lxml mamba_ssm markupsafe matplotlib mistral_common mlx mmh3
	modelscope mpmath msgpack msgspec multidict multiprocess networkx ninja nltk numba numexpr numpy nvtx ollama
	omegaconf onnx openai openai_harmony openpyxl optimum orjson outlines outlines_core packaging pandas
	partial_json_parser peft platformdirs plotly polars prometheus_client prometheus_fastapi_instrumentator protobuf
	psutil pyarrow pybase64 pybind11 pycountry pydantic pydantic_core pydantic_settings pynacl pypdf pytest pytz quanto
	quart qwen_vl_utils rapidfuzz ray redis regex requests rich sacrebleu safetensors sanic scipy seaborn
	sentence_transformers sentencepiece setproctitle setuptools sgl_kernel sglang shapely simplejson six sniffio
	soundfile soxr spacy sqlalchemy sse_starlette starlette sympy tabulate tenacity tensorboard tensorflow tensorrt
	tensorrt_llm termcolor tiktoken tilelang timm tokenizers toml tomli torch torchao torchaudio torchvision tornado tqdm
	transformers trl typer typing_extensions typing_inspection ujson ultralytics uvicorn uvloop vllm wandb watchfiles
	webdataset websockets wheel whisper xformers xgboost xgrammar xxhash yarl zstandard zstd
`)

// DistributionOf returns the name, in its normal form, of the distribution that
// provides a module; "" where the table does not know it.
func DistributionOf(module string) string {
	if names := providers(module); len(names) > 0 {
		return names[0]
	}
	return ""
}

// ProvidersOf returns all distributions that provide a module, the usual one
// first; nil where the table does not know it.
func ProvidersOf(module string) []string { return append([]string(nil), providers(module)...) }

func providers(module string) []string {
	for name := module; name != ""; {
		if names := distributions[name]; names != nil {
			return names
		}
		dot := strings.LastIndexByte(name, '.')
		if dot < 0 {
			break
		}
		name = name[:dot]
	}
	if root := rootOf(module); sameName[root] {
		return []string{strings.ToLower(strings.ReplaceAll(root, "_", "-"))}
	}
	return nil
}
