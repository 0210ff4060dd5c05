/** Reads `/metrics` of a process the way a collector does. */

/** Series by name and labels as they stand in the text; without what only describes them. */
export type Series = ReadonlyMap<string, number>;

export async function scrape(port: number, token?: string): Promise<Series> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, { headers });
  if (response.status !== 200) throw new Error(`/metrics answered ${response.status}`);
  const lines = (await response.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))]),
  );
}

/** Scrapes until `isThere` holds; fails after 15 s with what was read last. */
export async function scrapeUntil(port: number, isThere: (series: Series) => boolean): Promise<Series> {
  const deadline = performance.now() + 15_000;
  for (;;) {
    const series = await scrape(port);
    if (isThere(series)) return series;
    if (performance.now() > deadline) {
      const ours = [...series].filter(([name]) => !/_bucket|_process_|_nodejs_/.test(name));
      throw new Error(`the metrics never said so; last:\n${ours.map((pair) => pair.join(" ")).join("\n")}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
