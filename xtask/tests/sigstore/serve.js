// The services of Sigstore on loopback, for xtask/tests/it/sigstore.rs: the identities of a pipeline, the authority that
// certifies them, the log of signatures, and the repository that says where those are and whom to trust. Prints its port.
"use strict";

const { createHash, generateKeyPairSync } = require("node:crypto");
const { createServer } = require("node:http");
const { text } = require("node:stream/consumers");
const sigstore = require("@sigstore/mock");
const tuf = require("@tufjs/repo-mock");
const jose = require("jose");

const ISSUER = "https://issuer.example.org";
const ALWAYS = { start: new Date(0).toISOString() };

const keys = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
const sha256 = (data) => createHash("sha256").update(data).digest();

/** The pipeline's side: a token for whoever is asked for, of this issuer or of one that nobody knows. */
async function token({ subject, issuer = ISSUER, audience }, { privateKey }) {
  const claims = new jose.SignJWT().setProtectedHeader({ alg: "ES256" }).setSubject(subject).setIssuer(issuer);
  const value = await claims.setAudience(audience).setExpirationTime("5m").sign(privateKey);
  return { statusCode: 200, response: JSON.stringify({ value }) };
}

/** The authority: looks at the token as a real one does, which the mock leaves out. */
async function certify(request, fulcio, { publicKey }) {
  const oidcIdentityToken = request.headers.authorization?.replace("Bearer ", "");
  try {
    await jose.jwtVerify(oidcIdentityToken, publicKey, { issuer: ISSUER, audience: "sigstore" });
  } catch (error) {
    return { statusCode: 401, response: error.message };
  }
  const body = JSON.parse(await text(request));
  const answer = await fulcio.fn(JSON.stringify({ ...body, credentials: { oidcIdentityToken } }));
  // Cosign knows no other code of success.
  return { ...answer, statusCode: answer.statusCode === 201 ? 200 : answer.statusCode };
}

/** The log: what is kept of an envelope are its hashes, which the mock leaves to its caller. */
async function log(request, rekor) {
  const { spec, ...entry } = JSON.parse(await text(request));
  const { envelope, verifiers } = spec.proposedContent;
  const { payload, signatures } = JSON.parse(envelope);
  const hash = (data) => ({ algorithm: "sha256", value: sha256(data).toString("hex") });
  const kept = {
    envelopeHash: hash(envelope),
    payloadHash: hash(Buffer.from(payload, "base64")),
    signatures: signatures.map(({ sig }, index) => ({ signature: sig, verifier: verifiers[index] })),
  };
  const answer = await rekor.fn(JSON.stringify({ ...entry, spec: kept }));
  const [uuid] = Object.keys(JSON.parse(answer.response));
  return { ...answer, headers: { etag: uuid, location: `${rekor.path}/${uuid}` } };
}

/** Whom to trust: the authority, and both logs. */
function trustedRoot(authority, certificates, signatures) {
  const instance = ({ publicKey }) => ({
    baseUrl: "http://localhost",
    hashAlgorithm: "SHA2_256",
    publicKey: {
      rawBytes: publicKey.toString("base64"),
      keyDetails: "PKIX_ECDSA_P256_SHA_256",
      validFor: ALWAYS,
    },
    logId: { keyId: sha256(publicKey).toString("base64") },
  });
  const root = { rawBytes: authority.rootCertificate.toString("base64") };
  return {
    mediaType: "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    certificateAuthorities: [{ certChain: { certificates: [root] }, validFor: ALWAYS }],
    ctlogs: [instance(certificates)],
    tlogs: [instance(signatures)],
  };
}

/** Where everything is. */
function signingConfig(url) {
  const here = [{ url, majorApiVersion: 1, validFor: ALWAYS, operator: "here" }];
  return {
    mediaType: "application/vnd.dev.sigstore.signingconfig.v0.2+json",
    caUrls: here,
    rekorTlogUrls: here,
    rekorTlogConfig: { selector: "ANY" },
  };
}

/** Both as a client takes them, signed. */
function repository(trust, services) {
  const file = (name, content) => ({ name, content: JSON.stringify(content) });
  const files = [file("trusted_root.json", trust), file("signing_config.v0.2.json", services)];
  // Go writes a fraction of a second without the zeros at its end, and what was signed with them is then another text.
  for (;;) {
    const made = tuf.initializeTUFRepo(files);
    const { targets, ...metadata } = made;
    if (!/0Z"/.test(JSON.stringify(metadata))) {
      return tuf.tufHandlers(made, { metadataPathPrefix: "" });
    }
  }
}

async function main() {
  const issuer = keys();
  const certificates = await sigstore.initializeCTLog(keys());
  const authority = await sigstore.initializeCA(keys(), certificates);
  const signatures = await sigstore.initializeTLog("http://log.example.org", keys());
  const [fulcio, rekor] = [sigstore.fulcioHandler(authority), sigstore.rekorHandler(signatures)];
  const trust = trustedRoot(authority, certificates, signatures);
  // By the name that a client calls this server: a proxy in front of it has another port.
  const repositories = {};

  async function answer(request) {
    const url = new URL(request.url, `http://${request.headers.host}`);
    if (url.pathname === "/token") return token(Object.fromEntries(url.searchParams), issuer);
    if (url.pathname === fulcio.path) return certify(request, fulcio, issuer);
    if (url.pathname === rekor.path) return log(request, rekor);
    repositories[url.origin] ??= repository(trust, signingConfig(url.origin));
    const file = repositories[url.origin].find(({ path }) => path === url.pathname);
    return file?.fn() ?? { statusCode: 404, response: "" };
  }

  const server = createServer(async (request, response) => {
    // A caller that goes away in the middle of a request is no reason to end.
    const told = await answer(request).catch((error) => ({ statusCode: 500, response: String(error) }));
    const { statusCode, response: body, headers } = told;
    response.writeHead(statusCode, { "content-type": "application/json", ...headers }).end(body);
  });
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
}

main();
