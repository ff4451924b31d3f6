// ratelimit.*, by the general client and by the one that does nothing else; and the sign of life.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Overrides, Ratelimit } from "@unkey/ratelimit";
import * as errors from "@unkey/api/models/errors";
import { LONG_MS, own, rootKey, serverURL, unique, unkey, walk } from "./world.js";

const ask = (namespace, more = {}) => ({ namespace, identifier: "ann", limit: 2, duration: LONG_MS, ...more });

test("a limit lets through what fits and denies the rest with an answer", async () => {
  const namespace = unique("login");
  const { data: first } = await unkey.ratelimit.limit(ask(namespace));
  assert.deepEqual([first.success, first.limit, first.remaining], [true, 2, 1]);
  assert.ok(first.reset > Date.now() - 1_000);
  assert.equal((await unkey.ratelimit.limit(ask(namespace, { cost: 2 }))).data.success, false);
  assert.equal((await unkey.ratelimit.limit(ask(namespace, { cost: 0 }))).data.remaining, 1);
  assert.equal((await unkey.ratelimit.limit(ask(namespace))).data.success, true);
  assert.equal((await unkey.ratelimit.limit(ask(namespace))).data.success, false);
});

test("several limits pass together or not at all", async () => {
  const [wide, tight] = ["wide", "tight"].map(unique);
  const bundle = [ask(wide, { limit: 10 }), ask(tight, { limit: 1 })];
  const { data: passed } = await unkey.ratelimit.multiLimit(bundle);
  assert.equal(passed.passed, true);
  assert.deepEqual(passed.limits.map(({ namespace, remaining }) => [namespace, remaining]), [[wide, 9], [tight, 0]]);
  const { data: denied } = await unkey.ratelimit.multiLimit(bundle);
  assert.equal(denied.passed, false);
  assert.deepEqual(denied.limits.map(({ passed }) => passed), [true, false]);
  assert.equal(denied.limits[0].remaining, 9);
});

test("an override is set, found, listed, obeyed and deleted", async () => {
  const namespace = unique("api");
  await unkey.ratelimit.limit(ask(namespace, { identifier: "bob" }));
  const override = { identifier: "vip_*", limit: 50, duration: 60_000 };
  const { data: set } = await unkey.ratelimit.setOverride({ namespace, ...override });
  const { data: found } = await unkey.ratelimit.getOverride({ namespace, identifier: "vip_*" });
  assert.deepEqual({ ...found }, { overrideId: set.overrideId, ...override });
  const { data: limited } = await unkey.ratelimit.limit(ask(namespace, { identifier: "vip_ann" }));
  assert.deepEqual([limited.limit, limited.overrideId], [50, set.overrideId]);
  await unkey.ratelimit.setOverride({ namespace, identifier: "eve", limit: 0, duration: 60_000 });
  assert.equal((await unkey.ratelimit.limit(ask(namespace, { identifier: "eve" }))).data.success, false);
  const { rows, pages } = await walk(unkey.ratelimit.listOverrides({ namespace, limit: 1 }));
  assert.equal(pages, 2);
  assert.deepEqual(rows.map(({ identifier }) => identifier).sort(), ["eve", "vip_*"]);
  assert.deepEqual((await unkey.ratelimit.deleteOverride({ namespace, identifier: "vip_*" })).data, {});
  await assert.rejects(unkey.ratelimit.getOverride({ namespace, identifier: "vip_*" }), errors.NotFoundErrorResponse);
});

test("a deleted namespace is gone", async () => {
  const namespace = unique("gone");
  await unkey.ratelimit.limit(ask(namespace));
  await own("ratelimit.deleteNamespace", { namespace });
  await assert.rejects(unkey.ratelimit.limit(ask(namespace)), errors.GoneErrorResponse);
});

test("the client for limits alone agrees", async () => {
  const namespace = unique("edge");
  const limiter = new Ratelimit({ rootKey, baseUrl: serverURL, namespace, limit: 2, duration: LONG_MS, timeout: false });
  const answers = [];
  for (let at = 0; at < 3; at += 1) answers.push((await limiter.limit("ann")).success);
  assert.deepEqual(answers, [true, true, false]);
  assert.equal((await limiter.limit("bob", { cost: 2 })).remaining, 0);
  const overrides = new Overrides({ rootKey, baseUrl: serverURL });
  const { data } = await overrides.setOverride({ namespace, identifier: "carl", limit: 7, duration: 60_000 });
  const carl = await limiter.limit("carl");
  assert.deepEqual([carl.limit, carl.overrideId], [7, data.overrideId]);
});

test("the server gives the contract's sign of life without a key", async () => {
  const answer = await fetch(`${serverURL}/v2/liveness`);
  assert.equal(answer.status, 200);
  const json = await answer.json();
  assert.equal(typeof json.data.message, "string");
  assert.equal(typeof json.meta.requestId, "string");
});
