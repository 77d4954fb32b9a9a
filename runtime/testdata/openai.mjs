// Talks to the server at argv[2] with the official client and prints what it
// understood as one line of JSON.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2] + "/v1", apiKey: "none", maxRetries: 0 });
const question = {
  model: "abacus",
  messages: [{ role: "user", content: "Which is larger, 598 or 989?" }],
  temperature: 0,
  max_tokens: 32,
};

const models = [];
for await (const model of client.models.list()) models.push(model.id);

const answer = await client.chat.completions.create(question);

let streamed = "";
let usage = null;
const stream = await client.chat.completions.create({ ...question, stream: true, stream_options: { include_usage: true } });
for await (const chunk of stream) {
  streamed += chunk.choices[0]?.delta.content ?? "";
  usage = chunk.usage ?? usage;
}

let error = null;
try {
  await client.chat.completions.create({ ...question, messages: [{ role: "user", content: "1 ".repeat(5000) }] });
} catch (problem) {
  error = [problem.constructor.name, problem.status, problem.code];
}

console.log(JSON.stringify({ models, content: answer.choices[0].message.content, finish: answer.choices[0].finish_reason, streamed, total: usage.total_tokens, error }));
