// A client of the TypeScript SDK 1.x (@modelcontextprotocol/sdk).
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const asked = JSON.parse(readFileSync(0, "utf8"));
const transport = asked.command
  ? new StdioClientTransport({ command: asked.command[0], args: asked.command.slice(1) })
  : new StreamableHTTPClientTransport(new URL(asked.url));
const client = new Client({ name: "ts1", version: "1" });
await client.connect(transport);
const got = [await client.listTools()];
for (const call of asked.calls) got.push(await client.callTool({ name: call.tool, arguments: call.arguments }));
await client.close();
console.log(JSON.stringify(got));
