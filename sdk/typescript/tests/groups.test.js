// apis.*, identities.* and permissions.*: what keys belong to and what they may do.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as errors from "@unkey/api/models/errors";
import { LONG_MS, project, unique, unkey, verdict, verify, walk } from "./world.js";

test("an api is made, read, and gone with its keys once deleted", async () => {
  const name = unique("api");
  const { data: made } = await unkey.apis.createApi({ name });
  const { data: read } = await unkey.apis.getApi({ apiId: made.apiId });
  assert.deepEqual({ ...read }, { id: made.apiId, name });
  const { data: key } = await unkey.keys.createKey({ apiId: made.apiId });
  assert.equal((await verify(key.key)).valid, true);
  assert.deepEqual((await unkey.apis.deleteApi({ apiId: made.apiId })).data, {});
  await verdict(key.key, "NOT_FOUND");
  await assert.rejects(unkey.apis.getApi({ apiId: made.apiId }), errors.NotFoundErrorResponse);
});

test("the keys of an api are listed page by page, each one once", async () => {
  const apiId = await project();
  const externalId = unique("user");
  const made = [];
  for (let at = 0; at < 5; at += 1) {
    const more = at % 2 ? { externalId } : {};
    made.push((await unkey.keys.createKey({ apiId, ...more })).data.keyId);
  }
  const { rows, pages } = await walk(unkey.apis.listKeys({ apiId, limit: 2 }));
  assert.equal(pages, 3);
  assert.deepEqual(rows.map(({ keyId }) => keyId).sort(), made.sort());
  const theirs = await walk(unkey.apis.listKeys({ apiId, externalId }));
  assert.equal(theirs.rows.length, 2);
  assert.ok(theirs.rows.every(({ identity }) => identity.externalId === externalId));
});

test("an identity is made, found by id and name, changed and deleted", async () => {
  const externalId = unique("user");
  const limit = { name: "requests", limit: 100, duration: 60_000, autoApply: true };
  const { data: made } = await unkey.identities.createIdentity({
    externalId, meta: { plan: "free" }, ratelimits: [limit],
  });
  for (const identity of [made.identityId, externalId]) {
    const { data } = await unkey.identities.getIdentity({ identity });
    assert.equal(data.id, made.identityId);
    assert.equal(data.externalId, externalId);
    assert.deepEqual(data.meta, { plan: "free" });
    assert.equal(data.ratelimits[0].limit, 100);
  }
  const { data: changed } = await unkey.identities.updateIdentity({
    identity: externalId, meta: { plan: "pro" }, ratelimits: [{ ...limit, limit: 200 }],
  });
  assert.deepEqual(changed.meta, { plan: "pro" });
  assert.equal(changed.ratelimits[0].limit, 200);
  const { meta } = await unkey.identities.deleteIdentity({ identity: externalId });
  assert.ok(meta.requestId);
  await assert.rejects(unkey.identities.getIdentity({ identity: externalId }), errors.NotFoundErrorResponse);
});

test("keys of one identity share its limits", async () => {
  const externalId = unique("user");
  await unkey.identities.createIdentity({
    externalId, ratelimits: [{ name: "shared", limit: 2, duration: LONG_MS, autoApply: true }],
  });
  const apiId = await project();
  const texts = [];
  for (let at = 0; at < 3; at += 1) {
    texts.push((await unkey.keys.createKey({ apiId, externalId })).data.key);
  }
  const codes = [];
  for (const text of texts) codes.push((await verify(text)).code);
  assert.deepEqual(codes, ["VALID", "VALID", "RATE_LIMITED"]);
});

test("identities are listed page by page, and searched", async () => {
  const mark = unique("crowd");
  for (let at = 0; at < 3; at += 1) {
    await unkey.identities.createIdentity({ externalId: `${mark}.${at}` });
  }
  const found = await walk(unkey.identities.listIdentities({ search: mark, limit: 2 }));
  assert.equal(found.pages, 2);
  assert.deepEqual(found.rows.map(({ externalId }) => externalId).sort(), [0, 1, 2].map((at) => `${mark}.${at}`));
});

test("a permission is made, found by id and slug, listed and deleted", async () => {
  const slug = unique("documents.read");
  const { data: made } = await unkey.permissions.createPermission({ name: "Read", slug, description: "May read." });
  for (const permission of [made.permissionId, slug]) {
    const { data } = await unkey.permissions.getPermission({ permission });
    assert.deepEqual({ ...data }, { id: made.permissionId, name: "Read", slug, description: "May read." });
  }
  const { rows } = await walk(unkey.permissions.listPermissions({}));
  assert.ok(rows.some((row) => row.slug === slug));
  assert.deepEqual((await unkey.permissions.deletePermission({ permission: slug })).data, {});
  await assert.rejects(unkey.permissions.getPermission({ permission: slug }), errors.NotFoundErrorResponse);
});

test("a role is made, given permissions, listed and deleted", async () => {
  const name = unique("editor");
  const slugs = ["edit", "view"].map(unique);
  for (const slug of slugs) await unkey.permissions.createPermission({ name: slug, slug });
  const { data: made } = await unkey.permissions.createRole({ name, description: "May edit." });
  const { data: set } = await unkey.permissions.setRolePermissions({ roleId: made.roleId, permissions: slugs });
  assert.deepEqual(set.map(({ slug }) => slug).sort(), slugs.sort());
  for (const role of [made.roleId, name]) {
    const { data } = await unkey.permissions.getRole({ role });
    assert.deepEqual([data.id, data.name, data.description], [made.roleId, name, "May edit."]);
    assert.deepEqual(data.permissions.map(({ slug }) => slug).sort(), slugs.sort());
  }
  const { rows } = await walk(unkey.permissions.listRoles({}));
  assert.ok(rows.some((row) => row.id === made.roleId));
  assert.deepEqual((await unkey.permissions.deleteRole({ role: name })).data, {});
  await assert.rejects(unkey.permissions.getRole({ role: name }), errors.NotFoundErrorResponse);
});
