// One matcher of another project: cases come as JSON lines, texts (or null) go back.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";


// What a matcher says on its own account is not for us.
for (const name of ["log", "debug", "info", "warn", "error"]) console[name] = () => {};
const matcher = await import(process.argv[2]);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "peer-"));
const file = path.join(folder, "a.txt");
const config = new Proxy({}, { get: (_, name) => name === "then" ? undefined : () => false });
async function edited(name, { content, old, new: wanted }) {
  const edits = [{ oldText: old, newText: wanted }];
  if (name === "pi") return matcher.applyEditsToNormalizedContent(content, edits, file).newContent;
  if (name === "gemini") {
    const context = { params: { file_path: file, old_string: old, new_string: wanted }, currentContent: content };
    const done = await matcher.calculateReplacement(config, context);
    const { occurrences, finalOldString, finalNewString } = done;
    const failed = matcher.getErrorReplaceResult(context.params, occurrences, finalOldString, finalNewString);
    return failed ? null : done.newContent;
  }
  fs.writeFileSync(file, content);
  await matcher.applyFileEdits(file, edits, false);
  return fs.readFileSync(file, "utf8");
}
for await (const line of readline.createInterface({ input: process.stdin })) {
  let text = null;
  try { text = await edited(process.argv[3], JSON.parse(line)); } catch { text = null; }
  process.stdout.write(JSON.stringify({ text }) + "\n");
}
fs.rmSync(folder, { recursive: true });
process.exit(0);
