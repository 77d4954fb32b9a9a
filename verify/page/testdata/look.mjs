// Opens pages in headless Chromium, in two sizes and two colour schemes, and
// prints what is wrong with each as JSON.
//   node look.mjs CHROMIUM FOLDER_OF_SCREENSHOTS PAGE...
import puppeteer from "puppeteer-core";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

const [executablePath, screenshots, ...pages] = process.argv.slice(2);
const sizes = [{ width: 400, height: 800 }, { width: 1280, height: 900 }];
const schemes = ["light", "dark"];

// look runs in the page: does it scroll sideways, and which text is hard to read?
function look() {
  const channels = (text) => {
    const canvas = look.canvas ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3]));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const cache = new Map();
  const background = (element) => {
    if (!element) return [255, 255, 255];
    if (!cache.has(element)) cache.set(element, over(channels(getComputedStyle(element).backgroundColor), background(element.parentElement)));
    return cache.get(element);
  };
  const faint = [];
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let texts = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(element) || element.closest("svg")) continue;
    seen.add(element);
    texts++;
    const behind = background(element);
    const [a, b] = [luminance(over(channels(getComputedStyle(element).color), behind)), luminance(behind)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5 && faint.length < 5) faint.push(`${contrast.toFixed(2)}: ${walker.currentNode.data.trim().slice(0, 40)}`);
  }
  const root = document.scrollingElement;
  return { texts, faint, sideways: Math.max(root.scrollWidth - innerWidth, 0), scripts: document.scripts.length, pictures: document.images.length };
}

const browser = await puppeteer.launch({ executablePath, headless: true, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"] });
const results = [];
try {
  for (const page of pages) {
    const url = pathToFileURL(page).href;
    for (const size of sizes) {
      for (const scheme of schemes) {
        const tab = await browser.newPage();
        const problems = [];
        tab.on("console", (m) => problems.push(`console: ${m.text()}`));
        tab.on("pageerror", (e) => problems.push(`error: ${e.message}`));
        tab.on("dialog", (d) => { problems.push(`dialog: ${d.message()}`); d.dismiss(); });
        tab.on("request", (r) => { if (r.url() !== url && r.url() !== "data:,") problems.push(`request: ${r.url().slice(0, 100)}`); });
        await tab.setViewport(size);
        await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
        await tab.goto(url, { waitUntil: "load" });
        if (screenshots) {
          const name = `${basename(page, ".html")}-${size.width}-${scheme}`;
          await tab.screenshot({ path: join(screenshots, `${name}.png`) });
          if ((await tab.evaluate(() => document.body.scrollHeight)) < 12000) await tab.screenshot({ path: join(screenshots, `${name}-whole.png`), fullPage: true });
          for (const place of ["margins", "gate-files", "measured", "codes", "scales"]) {
            if (await tab.evaluate((id) => { const e = document.getElementById(id); e?.scrollIntoView({ behavior: "instant" }); return !!e; }, place)) {
              await tab.screenshot({ path: join(screenshots, `${name}-${place}.png`) });
            }
          }
        }
        const folded = await tab.evaluate(look);
        await tab.evaluate(() => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
        const unfolded = await tab.evaluate(look);
        for (const [state, seen] of [["folded", folded], ["unfolded", unfolded]]) {
          if (seen.sideways) problems.push(`${state}: scrolls ${seen.sideways} pixels sideways`);
          for (const text of seen.faint) problems.push(`${state}: contrast ${text}`);
          if (seen.scripts || seen.pictures) problems.push(`${state}: ${seen.scripts} scripts, ${seen.pictures} pictures`);
        }
        results.push({ page: basename(page), width: size.width, scheme, texts: unfolded.texts, problems });
        await tab.close();
      }
    }
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify(results));
