// What every test stands on: clients of the server under test, names that nobody else uses, and patience.
// Retries are off: a test must see the first answer.

import { randomUUID } from "node:crypto";
import assert from "node:assert/strict";
import { Unkey } from "@unkey/api";

export const serverURL = process.env.SERVER_URL;
export const rootKey = process.env.ROOT_KEY;
assert.ok(serverURL && rootKey, "SERVER_URL and ROOT_KEY are set; sdk/run does that");

/** A window that ends within a test once in a month, at midnight. */
export const LONG_MS = 2_592_000_000;

export const client = (key = rootKey) =>
  new Unkey({ rootKey: key, serverURL, retryConfig: { strategy: "none" } });

export const unkey = client();

/** A name of this test alone: all files run side by side against one server. */
export const unique = (name) => `${name}_${randomUUID().slice(0, 8)}`;

/** A project of the test's own. */
export async function project() {
  const { data } = await unkey.apis.createApi({ name: unique("project") });
  return data.apiId;
}

/** A key in a project of its own. */
export async function key(more = {}) {
  const apiId = await project();
  const { data } = await unkey.keys.createKey({ apiId, ...more });
  return { apiId, ...data };
}

export async function verify(text, more = {}) {
  const { data } = await unkey.keys.verifyKey({ key: text, ...more });
  return data;
}

/** Endpoints that are Tollkeeper's own, which the client does not know. */
export async function own(method, body) {
  const answer = await fetch(`${serverURL}/v2/${method}`, {
    method: "POST",
    headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const json = await answer.json();
  assert.equal(answer.status, 200, `${method}: ${JSON.stringify(json)}`);
  return json.data;
}

/** All rows of a list, page by page as the client walks it, and how many pages there were. */
export async function walk(list) {
  const rows = [];
  let pages = 0;
  for await (const page of await list) {
    rows.push(...page.result.data);
    pages += 1;
  }
  return { rows, pages };
}

/** A change reaches every cache within a second; two leave room for a busy machine. */
export async function eventually(what, happened) {
  const until = Date.now() + 2_000;
  for (;;) {
    const found = await happened();
    if (found) return found;
    assert.ok(Date.now() < until, `not within two seconds: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export const verdict = (text, code) =>
  eventually(`the verdict ${code}`, async () => {
    const data = await verify(text);
    return data.code === code && data;
  });
