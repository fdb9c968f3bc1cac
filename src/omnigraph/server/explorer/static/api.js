// Requests to the server. The token is kept for this tab only, and is sent only to this server.
const KEPT = "omnigraph.token";

export class Refused extends Error {
  constructor(status, body) {
    super(body.error || `the server responded with status ${status}`);
    this.status = status;
    this.body = body;
  }
}

let askForToken = null;
export const whenUnauthorized = (ask) => { askForToken = ask; };
export const hasToken = () => sessionStorage.getItem(KEPT) !== null;
export const forgetToken = () => sessionStorage.removeItem(KEPT);

export async function ask(path, { method = "GET", body, query = {} } = {}) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value].flat()) if (each !== undefined && each !== null) words.append(name, each);
  }
  const address = words.size ? `${path}?${words}` : path;
  for (;;) {
    const token = sessionStorage.getItem(KEPT);
    const headers = { Accept: "application/json" };
    if (token !== null) headers.Authorization = `Bearer ${token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const answer = await fetch(address, { method, headers, cache: "no-store", body: body === undefined ? undefined : JSON.stringify(body) });
    if (answer.ok) return answer.json();
    const failure = await answer.json().catch(() => ({}));
    if (answer.status !== 401 || !askForToken) throw new Refused(answer.status, failure);
    sessionStorage.setItem(KEPT, await askForToken(token === null ? "This server needs a token." : "This token is not valid."));
  }
}

// Requests to one graph.
export function graphOf(id) {
  const base = `graphs/${encodeURIComponent(id)}`;
  const get = (path, query) => ask(`${base}/${path}`, { query });
  const post = (path, body) => ask(`${base}/${path}`, { method: "POST", body });
  return {
    id,
    branches: async () => (await get("branches")).branches,
    createBranch: (name, from) => post("branches", { name, from }),
    types: async (branch) => (await get("types", { branch })).types,
    schemaText: async (branch) => (await get("schema", { branch })).schema_source,
    permissions: async (branch) => get("permissions", { branch }),
    complete: (text, branch) => post("complete", { text, branch }),
    query: (body) => post("query", body),
    mutate: (body) => post("mutate", body),
    explain: (body) => post("explain", body),
    draw: (what, query) => get(`drawings/${what}`, query),
    drawQuery: (body) => post("drawings/query", body),
    commits: async (branch, limit) => (await get("commits", { branch, limit })).commits,
    commitChanges: (id, query) => get(`commits/${encodeURIComponent(id)}/changes`, query),
    diff: (older, newer, query) => get("diff", { from: older, to: newer, ...query }),
    merge: (body) => post("branches/merge", body),
  };
}

// The graphs that this server lists.
export async function graphIds() {
  try {
    return (await ask("graphs")).graphs.map((each) => each.graph_id);
  } catch (refused) {
    if (!(refused instanceof Refused)) throw refused;
  }
  // A server that is not ready lists its graphs, too.
  const ready = await ask("readyz").catch((refused) => refused.body);
  return Object.keys(ready?.graphs || {});
}
