// Refusals: each one reaches the caller as the client's own class, whole, and never as a broken answer.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as errors from "@unkey/api/models/errors";
import { client, key, own, project, unique, unkey } from "./world.js";

async function refused(call, kind, status) {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof kind, `${error?.constructor?.name}: ${error}`);
    assert.equal(error.statusCode, status);
    assert.equal(error.error.status, status);
    assert.ok(error.meta.requestId);
    assert.ok(error.error.title && error.error.detail && error.error.type);
    return true;
  });
}

test("400 says what is wrong and where", async () => {
  // The client itself refuses nothing here: bounds are the server's part.
  const call = unkey.apis.createApi({ name: "x" });
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof errors.BadRequestErrorResponse, `${error}`);
    assert.equal(error.error.errors.length, 1);
    assert.match(error.error.errors[0].location, /name/);
    assert.ok(error.error.errors[0].message);
    return true;
  });
  const { apiId } = await key();
  for (const credits of [
    { remaining: null, refill: { interval: "daily", amount: 1 } },
    { remaining: 1, refill: { interval: "monthly", amount: 1 } },
  ]) {
    await refused(unkey.keys.createKey({ apiId, credits }), errors.BadRequestErrorResponse, 400);
  }
  await refused(unkey.identities.deleteIdentity({ identity: "" }), errors.BadRequestErrorResponse, 400);
});

test("401 is a root key that nobody made, in every group", async () => {
  const stranger = client("tk_nobody_made_this_root_key");
  for (const call of [
    () => stranger.keys.verifyKey({ key: "any" }),
    () => stranger.keys.getKey({ keyId: "key_any" }),
    () => stranger.apis.createApi({ name: "any" }),
    () => stranger.identities.getIdentity({ identity: "any" }),
    () => stranger.identities.deleteIdentity({ identity: "any" }),
    () => stranger.permissions.getRole({ role: "any" }),
    () => stranger.ratelimit.limit({ namespace: "any", identifier: "any", limit: 1, duration: 1_000 }),
  ]) {
    await refused(call(), errors.UnauthorizedErrorResponse, 401);
  }
});

test("403 is a root key that may not", async () => {
  const made = await own("rootKeys.createKey", { permissions: ["api.*.verify_key"], name: unique("narrow") });
  const narrow = client(made.key);
  await refused(narrow.apis.createApi({ name: "any" }), errors.ForbiddenErrorResponse, 403);
  await refused(narrow.identities.createIdentity({ externalId: "any" }), errors.ForbiddenErrorResponse, 403);
  await refused(narrow.permissions.createRole({ name: "any" }), errors.ForbiddenErrorResponse, 403);
  await refused(narrow.identities.deleteIdentity({ identity: "any" }), errors.ForbiddenErrorResponse, 403);
  const { key: text } = await key();
  assert.equal((await narrow.keys.verifyKey({ key: text })).data.code, "VALID");
  const other = await own("rootKeys.createKey", { permissions: ["api.*.read_api"], name: unique("blind") });
  const unseen = await client(other.key).keys.verifyKey({ key: text });
  assert.deepEqual({ ...unseen.data }, { valid: false, code: "NOT_FOUND" });
});

test("404 is anything that is not there, in every group", async () => {
  const { keyId } = await key();
  for (const call of [
    () => unkey.keys.createKey({ apiId: "api_nowhere" }),
    () => unkey.keys.getKey({ keyId: "key_nowhere" }),
    () => unkey.keys.updateKey({ keyId: "key_nowhere", enabled: false }),
    () => unkey.keys.updateCredits({ keyId: "key_nowhere", operation: "set", value: 1 }),
    () => unkey.keys.rerollKey({ keyId: "key_nowhere", expiration: 0 }),
    () => unkey.keys.deleteKey({ keyId: "key_nowhere" }),
    () => unkey.keys.whoami({ key: "nowhere" }),
    () => unkey.keys.addRoles({ keyId, roles: [unique("nowhere")] }),
    () => unkey.keys.addPermissions({ keyId: "key_nowhere", permissions: ["any"] }),
    () => unkey.apis.getApi({ apiId: "api_nowhere" }),
    () => unkey.apis.deleteApi({ apiId: "api_nowhere" }),
    () => unkey.apis.listKeys({ apiId: "api_nowhere" }),
    () => unkey.identities.getIdentity({ identity: "nowhere" }),
    () => unkey.identities.updateIdentity({ identity: "nowhere", meta: {} }),
    () => unkey.identities.deleteIdentity({ identity: "nowhere" }),
    () => unkey.permissions.getPermission({ permission: "nowhere" }),
    () => unkey.permissions.getRole({ role: "nowhere" }),
    () => unkey.ratelimit.setOverride({ namespace: unique("nowhere"), identifier: "any", limit: 1, duration: 1_000 }),
  ]) {
    await refused(call(), errors.NotFoundErrorResponse, 404);
  }
});

test("409 is a second one of the same name", async () => {
  const name = unique("twice");
  for (const make of [
    () => unkey.identities.createIdentity({ externalId: name }),
    () => unkey.permissions.createPermission({ name, slug: name }),
    () => unkey.permissions.createRole({ name }),
  ]) {
    await make();
    await refused(make(), errors.ConflictErrorResponse, 409);
  }
});

test("412 is a project that is protected from deletion", async () => {
  const apiId = await project();
  await own("projects.update", { apiId, deleteProtection: true });
  await refused(unkey.apis.deleteApi({ apiId }), errors.PreconditionFailedErrorResponse, 412);
  await own("projects.update", { apiId, deleteProtection: false });
  await unkey.apis.deleteApi({ apiId });
});

test("429 is a tenant over its cap", async () => {
  const tenant = await own("tenants.create", { name: unique("tenant") });
  await own("tenants.update", { tenantId: tenant.tenantId, requestsPerMinute: 1 });
  const capped = client(tenant.rootKey);
  const burst = async () => {
    for (let at = 0; at < 3; at += 1) await capped.apis.createApi({ name: "any" });
  };
  await refused(burst(), errors.TooManyRequestsErrorResponse, 429);
});
