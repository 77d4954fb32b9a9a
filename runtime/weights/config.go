package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/runtime/plainfile"
)

// Config reads the fields of config.json that decide a model's arithmetic. A
// key is looked up in text_config first, then at the top level; null counts as
// absent. The first fault is kept and returned by Finish, so that a family can
// read all its fields and check once.
//
// A field that no one reads and that is not known to be inert is an error of
// Finish: it may change the arithmetic.
type Config struct {
	file   string // for messages; with the section's name in a section
	text   map[string]any
	top    map[string]any // nil where there is no text_config
	read   map[string]bool
	inert  map[string]bool
	parent *Config
	err    error

	fp8Block []int // quantization_config.weight_block_size: rows, columns; nil without
}

// inertKeys are fields of config.json that do not change what a text model
// computes when it serves: what a saver writes about itself, about other halves
// and about training, and old defaults of generation.
var inertKeys = strings.Fields(`
	architectures attention_dropout auto_map bos_token_id chunk_size_feed_forward decoder_start_token_id dtype eos_token_id
	finetuning_task id2label image_token_id initializer_range is_decoder is_encoder_decoder label2id language_model_only model_name
	model_type name_or_path output_attentions output_hidden_states pad_token_id prefix problem_type quantization_config return_dict
	sep_token_id task_specific_params text_config tokenizer_class torch_dtype torchscript transformers_version unsloth_fixed
	unsloth_version use_cache video_token_id vision_config vision_end_token_id vision_start_token_id vision_token_id bad_words_ids
	begin_suppress_tokens diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size exponential_decay_length_penalty
	forced_bos_token_id forced_eos_token_id length_penalty max_length min_length no_repeat_ngram_size num_beam_groups num_beams
	num_return_sequences output_scores remove_invalid_values repetition_penalty return_dict_in_generate suppress_tokens temperature
	top_k top_p typical_p audio_config audio_end_token_id audio_start_token_id audio_token_id image_token_index video_token_index
`)

func readConfig(path string) (*Config, error) {
	fields, err := readObject(path)
	if err != nil {
		return nil, err
	}
	return newConfig(fields)
}

func newConfig(fields map[string]any) (*Config, error) {
	c := &Config{file: "config.json", text: fields, read: map[string]bool{}, inert: map[string]bool{}}
	for _, key := range inertKeys {
		c.inert[key] = true
	}
	if nested, ok := fields["text_config"]; ok && nested != nil {
		text, isObject := nested.(map[string]any)
		if !isObject {
			return nil, errors.New("config.json: text_config is not an object")
		}
		c.text, c.top = text, fields
	}
	c.readQuantization()
	return c, c.err
}

// readObject reads a JSON object in which no key occurs twice.
func readObject(path string) (map[string]any, error) {
	data, err := plainfile.Read(path, plainfile.Config)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := manifest.DecodeStrict(data, &fields); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return fields, nil
}

// readQuantization reads quantization_config, which may only describe block
// FP8.
func (c *Config) readQuantization() {
	q := c.Section("quantization_config")
	if q == nil {
		return
	}
	q.Inert("modules_to_not_convert", "ignored_layers")
	if !q.Has("quant_method") {
		q.fail("quant_method is missing")
	}
	q.Fixed("quant_method", "fp8")
	q.Fixed("fmt", "e4m3", "float8_e4m3fn")
	q.Fixed("activation_scheme", "dynamic")
	block := q.Ints("weight_block_size")
	if q.err == nil && (len(block) != 2 || block[0] <= 0 || block[1] <= 0 || block[1]%8 != 0) {
		q.fail("weight_block_size is %v, want two positive numbers, the second a multiple of 8", block)
	}
	if err := q.Finish(); err != nil {
		c.keep(err)
		return
	}
	c.fp8Block = block
}

// Architecture returns the one entry of architectures, "" if there is none.
func (c *Config) Architecture() string {
	fields := c.top
	if fields == nil {
		fields = c.text
	}
	list, _ := fields["architectures"].([]any)
	if len(list) != 1 {
		return ""
	}
	name, _ := list[0].(string)
	return name
}

// Inert declares fields that are read by no one and change nothing.
func (c *Config) Inert(keys ...string) {
	for _, key := range keys {
		c.inert[key] = true
	}
}

// lookup returns a value that is present and not null.
func (c *Config) lookup(key string) (any, bool) {
	c.read[key] = true
	if value := c.text[key]; value != nil {
		return value, true
	}
	value := c.top[key]
	return value, value != nil
}

// Has reports whether a field is present and not null.
func (c *Config) Has(key string) bool {
	_, ok := c.lookup(key)
	return ok
}

// Int returns a required positive integer.
func (c *Config) Int(key string) int {
	value, ok := c.lookup(key)
	if !ok {
		c.fail("%s is missing", key)
		return 1
	}
	n, ok := value.(float64)
	if !ok || n != math.Trunc(n) || n < 1 || n > math.MaxInt32 {
		c.fail("%s is %v, want a positive integer", key, value)
		return 1
	}
	return int(n)
}

// IntOr returns a positive integer, fallback where it is absent.
func (c *Config) IntOr(key string, fallback int) int {
	if !c.Has(key) {
		return fallback
	}
	return c.Int(key)
}

// Float returns a required positive number.
func (c *Config) Float(key string) float64 {
	value, ok := c.lookup(key)
	if !ok {
		c.fail("%s is missing", key)
		return 1
	}
	f, ok := value.(float64)
	if !ok || f <= 0 {
		c.fail("%s is %v, want a positive number", key, value)
		return 1
	}
	return f
}

// Flag returns a boolean, fallback where it is absent. Where both levels have
// it they must agree.
func (c *Config) Flag(key string, fallback bool) bool {
	value, ok := c.lookup(key)
	if !ok {
		return fallback
	}
	flag, ok := value.(bool)
	if !ok {
		c.fail("%s is %v, want true or false", key, value)
		return fallback
	}
	if other := c.top[key]; other != nil && other != value {
		c.fail("%s is %v in text_config and %v at the top level", key, value, other)
	}
	return flag
}

// Strings returns a list of strings, nil where it is absent.
func (c *Config) Strings(key string) []string {
	value, ok := c.lookup(key)
	if !ok {
		return nil
	}
	list, ok := value.([]any)
	texts := make([]string, len(list))
	for i, element := range list {
		text, isText := element.(string)
		texts[i], ok = text, ok && isText
	}
	if !ok {
		c.fail("%s is %v, want a list of strings", key, value)
	}
	return texts
}

// Ints returns a list of non-negative integers, nil where it is absent.
func (c *Config) Ints(key string) []int {
	value, ok := c.lookup(key)
	if !ok {
		return nil
	}
	list, ok := value.([]any)
	numbers := make([]int, len(list))
	for i, element := range list {
		n, isNumber := element.(float64)
		ok = ok && isNumber && n == math.Trunc(n) && n >= 0 && n <= math.MaxInt32
		if ok {
			numbers[i] = int(n)
		}
	}
	if !ok {
		c.fail("%s is %v, want a list of integers", key, value)
	}
	return numbers
}

// Fixed refuses a field that is present with a value other than the allowed
// ones (strings, booleans, float64).
func (c *Config) Fixed(key string, allowed ...any) {
	value, ok := c.lookup(key)
	if ok && !slices.Contains(allowed, scalar(value)) {
		c.fail("%s is %v; only %v is supported", key, value, allowed)
	}
}

// scalar keeps lists and objects, which == panics on, out of a comparison.
func scalar(value any) any {
	switch value.(type) {
	case string, bool, float64:
		return value
	}
	return nil
}

// Section returns the object of a field, nil where it is absent. Its faults
// become those of c when it is finished.
func (c *Config) Section(key string) *Config {
	value, ok := c.lookup(key)
	if !ok {
		return nil
	}
	fields, ok := value.(map[string]any)
	if !ok {
		c.fail("%s is %v, want an object", key, value)
		return nil
	}
	return &Config{file: c.file + ": " + key, text: fields, read: map[string]bool{}, inert: map[string]bool{}, parent: c}
}

// Fail records a fault of the configuration.
func (c *Config) Fail(format string, arguments ...any) { c.fail(format, arguments...) }

func (c *Config) fail(format string, arguments ...any) {
	c.keep(fmt.Errorf(c.file+": "+format, arguments...))
}

func (c *Config) keep(err error) {
	if c.err == nil {
		c.err = err
	}
}

// Finish returns the first fault, or the first field, of text_config and then of
// the top level, that might change the arithmetic and that nobody read. Fields
// that are null, false or empty, or whose name begins with an underscore, say
// nothing.
func (c *Config) Finish() error {
	c.checkRead(c.text)
	c.checkRead(c.top)
	if c.err != nil && c.parent != nil {
		c.parent.keep(c.err)
	}
	return c.err
}

func (c *Config) checkRead(fields map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if c.read[key] || c.inert[key] || strings.HasPrefix(key, "_") || saysNothing(fields[key]) {
			continue
		}
		c.keep(manifest.WithHint(fmt.Errorf("%s: unknown field %q could change what the model computes", c.file, key),
			"if it changes nothing, take it out of config.json"))
	}
}

func saysNothing(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case bool:
		return !value
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}

// readEndTokens joins eos_token_id of config.json, at both levels, and of
// generation_config.json, which may be absent.
func readEndTokens(folder string, config *Config) ([]int32, error) {
	fields, err := readObject(filepath.Join(folder, "generation_config.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ids []int32
	for _, source := range []struct {
		file   string
		fields map[string]any
	}{{"config.json", config.text}, {"config.json", config.top}, {"generation_config.json", fields}} {
		value := source.fields["eos_token_id"]
		list, isList := value.([]any)
		if !isList && value != nil {
			list = []any{value}
		}
		for _, element := range list {
			id, ok := element.(float64)
			if !ok || id != math.Trunc(id) || id < 0 || id > math.MaxInt32 {
				return nil, fmt.Errorf("%s: eos_token_id is %v, want token ids", source.file, value)
			}
			ids = append(ids, int32(id))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
