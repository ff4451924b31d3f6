// keys.*: a key from its making to its end.

import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { test } from "node:test";
import * as errors from "@unkey/api/models/errors";
import { eventually, key, project, unique, unkey, verdict, verify } from "./world.js";

const LIMIT = { name: "requests", limit: 10, duration: 60_000, autoApply: true };

test("a new key carries everything it was made with", async () => {
  const externalId = unique("user");
  const expires = Date.now() + 3_600_000;
  const { keyId, key: text } = await key({
    prefix: "prod",
    name: "Ann's laptop",
    byteLength: 24,
    externalId,
    meta: { plan: "pro", seats: 3 },
    permissions: ["documents.read", "documents.write"],
    expires,
    credits: { remaining: 100, refill: { interval: "monthly", amount: 100, refillDay: 31 } },
    ratelimits: [LIMIT],
  });
  assert.match(text, /^prod_[0-9A-Za-z]+$/);

  for (const { data } of [
    await unkey.keys.getKey({ keyId }),
    await unkey.keys.whoami({ key: text }),
  ]) {
    assert.equal(data.keyId, keyId);
    assert.ok(text.startsWith(data.start), data.start);
    assert.equal(data.enabled, true);
    assert.equal(data.name, "Ann's laptop");
    assert.deepEqual(data.meta, { plan: "pro", seats: 3 });
    assert.equal(data.expires, expires);
    assert.deepEqual(data.permissions, ["documents.read", "documents.write"]);
    assert.equal(data.credits.remaining, 100);
    assert.deepEqual(data.credits.refill, { interval: "monthly", amount: 100, refillDay: 31 });
    assert.equal(data.identity.externalId, externalId);
    const [{ id, ...limit }, ...others] = data.ratelimits;
    assert.ok(id);
    assert.deepEqual([limit, others], [LIMIT, []]);
    assert.equal(data.plaintext, undefined);
    assert.ok(Math.abs(data.createdAt - Date.now()) < 60_000);
  }
});

test("a recoverable key is shown again to who asks for it", async () => {
  const { apiId, keyId, key: text } = await key({ recoverable: true });
  const { data } = await unkey.keys.getKey({ keyId, decrypt: true });
  assert.equal(data.plaintext, text);
  const listed = await unkey.apis.listKeys({ apiId, decrypt: true });
  assert.equal(listed.result.data[0].plaintext, text);
});

test("an update keeps what is absent, clears what is null and replaces the rest", async () => {
  const { keyId, key: text } = await key({
    name: "before",
    externalId: unique("user"),
    meta: { a: 1 },
    expires: Date.now() + 3_600_000,
    credits: { remaining: 5 },
    ratelimits: [LIMIT],
  });
  const { data: before } = await unkey.keys.getKey({ keyId });
  await unkey.keys.updateKey({ keyId, name: "after", ratelimits: [{ ...LIMIT, limit: 20 }] });
  const { data: renamed } = await unkey.keys.getKey({ keyId });
  assert.equal(renamed.name, "after");
  assert.deepEqual(renamed.meta, { a: 1 });
  assert.equal(renamed.credits.remaining, 5);
  assert.equal(renamed.ratelimits[0].limit, 20);
  assert.equal(renamed.ratelimits[0].id, before.ratelimits[0].id);

  await unkey.keys.updateKey({
    keyId, name: null, externalId: null, meta: null, expires: null, credits: null, ratelimits: [],
  });
  const { data: bare } = await unkey.keys.getKey({ keyId });
  for (const gone of ["name", "identity", "meta", "expires", "credits", "ratelimits"]) {
    assert.equal(bare[gone], undefined, gone);
  }

  await unkey.keys.updateKey({ keyId, enabled: false });
  await verdict(text, "DISABLED");
  await unkey.keys.updateKey({ keyId, enabled: true });
  await verdict(text, "VALID");
});

test("credits are set, added, taken down to zero, and made endless", async () => {
  const { keyId, key: text } = await key({ credits: { remaining: 10 } });
  const change = async (operation, value) => {
    const { data } = await unkey.keys.updateCredits({ keyId, operation, value });
    return data.remaining;
  };
  assert.equal(await change("increment", 5), 15);
  assert.equal(await change("decrement", 3), 12);
  assert.equal(await change("decrement", 100), 0);
  await verdict(text, "USAGE_EXCEEDED");
  assert.equal(await change("set", 2), 2);
  await verdict(text, "VALID");
  assert.equal(await change("set", null), null);
  const endless = await eventually("no balance", async () => {
    const data = await verify(text);
    return data.valid && data.credits === undefined && data;
  });
  assert.equal(endless.code, "VALID");
  await assert.rejects(
    unkey.keys.updateCredits({ keyId, operation: "increment", value: 1 }),
    errors.BadRequestErrorResponse,
  );
});

test("permissions are added, removed and set, and each answer is the whole set", async () => {
  const [read, write, list] = ["read", "write", "list"].map(unique);
  const { keyId, key: text } = await key({ permissions: [read] });
  const slugs = ({ data }) => data.map(({ slug }) => slug).sort();
  const added = await unkey.keys.addPermissions({ keyId, permissions: [write, list] });
  assert.deepEqual(slugs(added), [list, read, write].sort());
  assert.ok(added.data.every(({ id, name }) => id && name));
  await eventually("the permission counts", async () =>
    (await verify(text, { permissions: `${read} AND ${write}` })).valid);
  const left = await unkey.keys.removePermissions({ keyId, permissions: [write] });
  assert.deepEqual(slugs(left), [list, read].sort());
  const set = await unkey.keys.setPermissions({ keyId, permissions: [write] });
  assert.deepEqual(slugs(set), [write]);
  assert.deepEqual((await unkey.keys.setPermissions({ keyId, permissions: [] })).data, []);
});

test("roles are added, removed and set, and bring their permissions", async () => {
  const [editor, viewer] = ["editor", "viewer"].map(unique);
  const edit = unique("edit");
  await unkey.permissions.createPermission({ name: edit, slug: edit });
  await unkey.permissions.createRole({ name: editor, permissions: [edit] });
  await unkey.permissions.createRole({ name: viewer });
  const { keyId, key: text } = await key();
  const names = ({ data }) => data.map(({ name }) => name).sort();
  assert.deepEqual(names(await unkey.keys.addRoles({ keyId, roles: [editor, viewer] })), [editor, viewer].sort());
  const data = await eventually("the role counts", async () => {
    const found = await verify(text, { permissions: edit });
    return found.valid && found;
  });
  assert.deepEqual(data.permissions, [edit]);
  assert.deepEqual(data.roles, [editor, viewer].sort());
  assert.deepEqual(names(await unkey.keys.removeRoles({ keyId, roles: [editor] })), [viewer]);
  await eventually("the role is gone", async () => !(await verify(text, { permissions: edit })).valid);
  assert.deepEqual(names(await unkey.keys.setRoles({ keyId, roles: [editor] })), [editor]);
  assert.deepEqual((await unkey.keys.setRoles({ keyId, roles: [] })).data, []);
});

test("a rerolled key lives on under a new text, the old one as long as it is given", async () => {
  const old = await key({ prefix: "live_v1", name: "server", meta: { a: 1 } });
  const { data: graced } = await unkey.keys.rerollKey({ keyId: old.keyId, expiration: 3_600_000 });
  assert.notEqual(graced.keyId, old.keyId);
  assert.match(graced.key, /^live_v1_/);
  assert.equal((await verify(graced.key)).name, "server");
  assert.deepEqual((await verify(graced.key)).meta, { a: 1 });
  assert.equal((await verify(old.key)).valid, true);

  const { data: atOnce } = await unkey.keys.rerollKey({ keyId: graced.keyId, expiration: 0 });
  await verdict(graced.key, "EXPIRED");
  assert.equal((await verify(atOnce.key)).valid, true);
});

test("a deleted key is unknown, everywhere", async () => {
  for (const permanent of [false, true]) {
    const { keyId, key: text } = await key();
    assert.equal((await verify(text)).valid, true);
    assert.deepEqual((await unkey.keys.deleteKey({ keyId, permanent })).data, {});
    await verdict(text, "NOT_FOUND");
    await assert.rejects(unkey.keys.getKey({ keyId }), errors.NotFoundErrorResponse);
    await assert.rejects(unkey.keys.whoami({ key: text }), errors.NotFoundErrorResponse);
  }
});

test("keys from elsewhere work by their hashes, and a hash is taken once", async () => {
  const apiId = await project();
  const texts = [`old_${randomUUID()}`, `sk-${randomUUID()}`];
  const sha256 = (text, encoding) => createHash("sha256").update(text).digest(encoding);
  const externalId = unique("user");
  const keys = [
    { hash: sha256(texts[0], "base64"), name: "first", externalId, credits: { remaining: 3 } },
    { hash: sha256(texts[1], "hex"), enabled: false },
  ];
  const migrationId = unique("migration");
  const { data } = await unkey.keys.migrateKeys({ migrationId, apiId, keys });
  assert.deepEqual(data.failed, []);
  assert.deepEqual(data.migrated.map(({ hash }) => hash), keys.map(({ hash }) => hash));
  const first = await verify(texts[0], { migrationId });
  assert.equal(first.code, "VALID");
  assert.equal(first.keyId, data.migrated[0].keyId);
  assert.equal(first.credits, 2);
  assert.equal(first.identity.externalId, externalId);
  assert.equal((await verify(texts[1])).code, "DISABLED");
  const again = await unkey.keys.migrateKeys({ migrationId, apiId, keys: keys.slice(0, 1) });
  assert.deepEqual(again.data, { migrated: [], failed: [keys[0].hash] });
});
