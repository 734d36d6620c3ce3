// Makes the pages from their sources: `node build.mjs FOLDER`. The same sources always give the same bytes.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv[2] ?? `${here}../collector/embedded/page`;

async function bundled(entry) {
  const result = await build({
    entryPoints: [here + entry],
    bundle: true,
    minify: true,
    write: false,
    charset: "ascii",
    format: "iife",
    target: ["chrome110", "firefox113", "safari16.4"],
    absWorkingDir: here,
    legalComments: "none",
  });
  return result.outputFiles[0].text.trim();
}

const style = await bundled("src/style.css");
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Makes a page. `more` are the connections that the page may make, as parts of its content security policy. */
async function page(name, entry, ...more) {
  const script = await bundled(entry);
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    "img-src data:",
    ...more,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
  if (/<\/(script|style)/i.test(script + style)) throw new Error("the bundle would end its own element");
  // The replacements are functions, because dollar signs in a replacement string have a special meaning.
  const text = readFileSync(`${here}src/${name}`, "utf8")
    .replace("@policy@", () => policy)
    .replace("@style@", () => style)
    .replace("@script@", () => script);
  writeFileSync(`${out}/${name}`, text);
}

await page("page.html", "src/main.ts");
await page("live.html", "src/live.ts", "connect-src 'self'");
