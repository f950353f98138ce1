// The TypeScript SDK as a client: node client.mjs MODULES (COMMAND ARGS... | URL TOKEN) prints what it saw as JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, command, ...args] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${modules}/node_modules/`).href);
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)).href);
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { ElicitRequestSchema } = await load("types.js");

const client = new Client({ name: "npm", version: "1" }, { capabilities: { elicitation: {} } });
const asked = [];
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  asked.push(request.params.message);
  return { action: "accept", content: { decision: "once" } };
});
const transport = command.startsWith("http:")
  ? new StreamableHTTPClientTransport(new URL(command), {
      requestInit: { headers: { authorization: `Bearer ${args[0]}` } },
    })
  : new StdioClientTransport({ command, args, env: process.env });
await client.connect(transport);

const seen = { asked };
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
seen.approved = await client.callTool({ name: "write", arguments: { path: ".envrc", content: "x\n" } });
seen.wrong = await client.callTool({ name: "read", arguments: { pth: "a" } });
const heard = [];
await client.callTool({ name: "steps", arguments: { steps: 5 } }, undefined, {
  onprogress: (progress) => heard.push(progress.message),
});
seen.heard = heard;
const stop = new AbortController();
const cut = client.callTool({ name: "bash", arguments: { command: "echo begun; sleep 60" } }, undefined, {
  signal: stop.signal,
  onprogress: () => stop.abort("enough"),
});
seen.cancelled = await cut.then(() => "", (problem) => String(problem));
let journal = [];
while (!journal.some((call) => call.tool === "bash")) {
  const read = await client.readResource({ uri: "handtools://journal" });
  journal = JSON.parse(read.contents[0].text);
}
seen.journal = journal.map((call) => [call.tool, call.status]);
await client.close();
console.log(JSON.stringify(seen));
