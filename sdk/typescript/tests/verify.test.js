// keys.verifyKey: every verdict that a key can get, as the client reads it.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as errors from "@unkey/api/models/errors";
import { LONG_MS, key, own, project, unique, unkey, verdict, verify } from "./world.js";

test("VALID comes with all that is known about the key", async () => {
  const externalId = unique("user");
  const made = await key({
    name: "Ann's laptop",
    externalId,
    meta: { plan: "pro" },
    permissions: ["documents.read"],
    credits: { remaining: 10 },
    ratelimits: [{ name: "requests", limit: 5, duration: LONG_MS, autoApply: true }],
  });
  const data = await verify(made.key, { tags: ["route=/documents"], credits: { cost: 3 } });
  assert.equal(data.valid, true);
  assert.equal(data.code, "VALID");
  assert.equal(data.keyId, made.keyId);
  assert.equal(data.name, "Ann's laptop");
  assert.deepEqual(data.meta, { plan: "pro" });
  assert.equal(data.credits, 7);
  assert.equal(data.enabled, true);
  assert.deepEqual(data.permissions, ["documents.read"]);
  assert.equal(data.identity.externalId, externalId);
  assert.equal(data.ratelimits.length, 1);
  const [limit] = data.ratelimits;
  assert.deepEqual(
    [limit.name, limit.limit, limit.remaining, limit.exceeded, limit.autoApply],
    ["requests", 5, 4, false, true],
  );
  assert.ok(limit.reset > Date.now() - 1_000);
});

test("NOT_FOUND says nothing else", async () => {
  for (const text of ["no such key", "prod_0123456789abcdefghijklmnopq"]) {
    assert.deepEqual({ ...(await verify(text)) }, { valid: false, code: "NOT_FOUND" });
  }
});

test("DISABLED, EXPIRED and REVOKED are told apart", async () => {
  const disabled = await key({ enabled: false });
  assert.equal((await verify(disabled.key)).code, "DISABLED");
  const expired = await key({ expires: Date.now() - 60_000 });
  assert.equal((await verify(expired.key)).code, "EXPIRED");
  const revoked = await key();
  await own("keys.revoke", { keyId: revoked.keyId, reason: "leaked" });
  assert.equal((await verdict(revoked.key, "REVOKED")).valid, false);
});

test("FORBIDDEN is a key with an allow-list and no address", async () => {
  const apiId = await project();
  const made = await own("keys.createKey", { apiId, ipAllowlist: ["203.0.113.0/24"] });
  assert.equal((await verify(made.key)).code, "FORBIDDEN");
});

test("FORBIDDEN is a key that wants signed requests, and it can be read all the same", async () => {
  const apiId = await project();
  const made = await own("keys.createKey", { apiId, signing: "a secret of 16 and more" });
  assert.equal((await verify(made.key)).code, "FORBIDDEN");
  assert.equal((await unkey.keys.getKey({ keyId: made.keyId })).data.keyId, made.keyId);
});

test("INSUFFICIENT_PERMISSIONS spends nothing", async () => {
  const made = await key({ permissions: ["a", "b"], credits: { remaining: 1 } });
  for (const query of ["c", "a AND c", "(a OR c) AND (c OR d)"]) {
    assert.equal((await verify(made.key, { permissions: query })).code, "INSUFFICIENT_PERMISSIONS", query);
  }
  assert.equal((await verify(made.key, { permissions: "c OR a AND b" })).credits, 0);
});

test("a query that is none is a bad request", async () => {
  const made = await key();
  await assert.rejects(unkey.keys.verifyKey({ key: made.key, permissions: "a AND (b" }), (error) => {
    assert.ok(error instanceof errors.BadRequestErrorResponse, `${error}`);
    assert.ok(Array.isArray(error.error.errors));
    return true;
  });
});

test("USAGE_EXCEEDED leaves balance and limits as they were", async () => {
  const made = await key({
    credits: { remaining: 2 },
    ratelimits: [{ name: "requests", limit: 5, duration: LONG_MS, autoApply: true }],
  });
  const denied = await verify(made.key, { credits: { cost: 3 } });
  assert.deepEqual([denied.valid, denied.code, denied.credits], [false, "USAGE_EXCEEDED", 2]);
  const allowed = await verify(made.key, { credits: { cost: 2 } });
  assert.deepEqual([allowed.code, allowed.credits, allowed.ratelimits[0].remaining], ["VALID", 0, 4]);
  assert.equal((await verify(made.key, { credits: { cost: 0 } })).code, "VALID");
});

test("RATE_LIMITED names the limit that was exceeded and spends no credits", async () => {
  const made = await key({
    credits: { remaining: 9 },
    ratelimits: [{ name: "tokens", limit: 2, duration: LONG_MS, autoApply: false }],
  });
  const ask = { ratelimits: [{ name: "tokens", cost: 2 }, { name: "adhoc", limit: 9, duration: LONG_MS }] };
  assert.equal((await verify(made.key, ask)).code, "VALID");
  const denied = await verify(made.key, ask);
  assert.deepEqual([denied.valid, denied.code, denied.credits], [false, "RATE_LIMITED", 8]);
  const exceeded = Object.fromEntries(denied.ratelimits.map((limit) => [limit.name, limit.exceeded]));
  assert.deepEqual(exceeded, { tokens: true, adhoc: false });
  const left = Object.fromEntries(denied.ratelimits.map((limit) => [limit.name, limit.remaining]));
  assert.deepEqual(left, { tokens: 0, adhoc: 8 });
});

test("a limit that nobody stored is a failed precondition", async () => {
  const made = await key();
  await assert.rejects(
    unkey.keys.verifyKey({ key: made.key, ratelimits: [{ name: "nowhere" }] }),
    (error) => error instanceof errors.UnkeyError && error.statusCode === 412,
  );
});
