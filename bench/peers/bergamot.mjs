// Translates the lines of standard input in the engine of Firefox's translations, bergamot-translator's WebAssembly:
//   npm install @browsermt/bergamot-translator && node bergamot.mjs MODEL.bin VOCAB.spm[,TARGET.spm] [KEY=VALUE ...]
// run where the package is installed; keys are Marian's decoding options. See bergamot.sh.
import {Worker} from "node:worker_threads";
import {createRequire} from "node:module";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

const [modelPath, vocabularyPaths, ...options] = process.argv.slice(2);
const config = {};
for (const option of options) config[option.slice(0, option.indexOf("="))] = option.slice(option.indexOf("=") + 1);

// The package declares itself a module, but its worker is a script: a copy outside of the package loads as one.
const entry = createRequire(path.join(process.cwd(), "x.js")).resolve("@browsermt/bergamot-translator");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "engine-"));
fs.cpSync(path.join(path.dirname(entry), "worker"), folder, {recursive: true});

const engine = new Worker(path.join(folder, "translator-worker.js"));
const calls = new Map();
engine.on("message", ({id, result, error}) => {
  const call = calls.get(id);
  calls.delete(id);
  if (error) call.failed(new Error(error.message ?? String(error)));
  else call.done(result);
});
let calls_so_far = 0;
function ask(name, ...args) {
  return new Promise((done, failed) => {
    calls.set(++calls_so_far, {done, failed});
    engine.postMessage({id: calls_so_far, name, args});
  });
}
function buffer_of(file) {
  const content = fs.readFileSync(file);
  return content.buffer.slice(content.byteOffset, content.byteOffset + content.byteLength);
}

try {
  const pair = {from: "xx", to: "yy"};
  await ask("initialize", {cacheSize: 0});
  await ask("loadTranslationModel", pair, {
    model: buffer_of(modelPath), shortlist: new ArrayBuffer(0), vocabs: vocabularyPaths.split(",").map(buffer_of), config,
  });
  const lines = fs.readFileSync(0, "utf8").split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const text of lines) {
    const [answer] = await ask("translate", {models: [pair], texts: [{text, html: false, qualityScores: false}]});
    console.log(answer.target.text);
  }
} finally {
  await engine.terminate();
  fs.rmSync(folder, {recursive: true});
}
