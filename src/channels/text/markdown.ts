/**
 * Markdown → formatted text. The grammar is marked's; what it looks like on a chat platform is decided here: headings are
 * bold, lists have bullets, tables are aligned text. Invariant: it never throws, and no word is lost: whatever is not
 * understood, html among it, shows as it was written.
 */
import { Lexer, type MarkedToken, type Token, type Tokens } from "marked";
import { type Formatted, FormattedBuilder, plain, type Style } from "./formatted.js";
import { alignTable } from "./table.js";

const SAFE_PROTOCOLS: readonly string[] = ["http:", "https:", "tg:"];

/** Renders a text as models write it. Lone surrogates become U+FFFD. */
export function renderMarkdown(markdown: string): Formatted {
  const source = markdown.toWellFormed();
  try {
    const renderer = new Renderer({ showsAddresses: false });
    renderer.blocks(Lexer.lex(source, { gfm: true }));
    return renderer.builder.result();
  } catch {
    // Markup nested too deep for the grammar: shown as it was written.
    return plain(source);
  }
}

class Renderer {
  readonly builder = new FormattedBuilder();
  /** Whether addresses show behind their links: where no entity can carry them. */
  readonly #showsAddresses: boolean;
  /** What lines within a list begin with. */
  #indent = "";

  constructor(options: { showsAddresses: boolean }) {
    this.#showsAddresses = options.showsAddresses;
  }

  blocks(tokens: readonly Token[]): void {
    let before: Token | null = null;
    for (const token of tokens) {
      if (before !== null && before.type !== "checkbox") this.#gap(endsBlank(before) ? 2 : 1, hasOwnLines(token));
      if (token.type !== "space") this.#block(token as MarkedToken);
      before = token;
    }
  }

  #block(token: MarkedToken): void {
    switch (token.type) {
      case "heading":
        this.#styled({ type: "bold" }, token.tokens);
        break;
      case "paragraph":
        this.inline(token.tokens);
        break;
      case "text":
        this.#text(token);
        break;
      case "code":
        this.#code(token);
        break;
      case "blockquote":
        this.builder.styled({ type: "quote" }, () => this.blocks(token.tokens));
        break;
      case "list":
        this.#list(token);
        break;
      case "table":
        this.#table(token);
        break;
      case "hr":
        this.#words("———");
        break;
      default:
        this.#inlineOne(token);
    }
  }

  inline(tokens: readonly Token[]): void {
    for (const token of tokens) this.#inlineOne(token as MarkedToken);
  }

  #inlineOne(token: MarkedToken): void {
    switch (token.type) {
      case "text":
        this.#text(token);
        break;
      case "escape":
        this.#words(token.text);
        break;
      case "strong":
        this.#styled({ type: "bold" }, token.tokens);
        break;
      case "em":
        this.#styled({ type: "italic" }, token.tokens);
        break;
      case "del":
        this.#styled({ type: "strike" }, token.tokens);
        break;
      case "codespan":
        this.builder.styled({ type: "code" }, () => this.builder.append(token.text));
        break;
      case "link":
        this.#link(token);
        break;
      case "image":
        this.#link({ ...token, tokens: [] });
        break;
      case "br":
        this.#words("\n");
        break;
      case "checkbox":
        this.#words(token.checked ? "☑ " : "☐ ");
        break;
      case "html":
        this.#words(/^<br\s*\/?>$/i.test(token.raw.trim()) ? "\n" : token.raw.trimEnd());
        break;
      default:
        this.#words(token.raw.trimEnd());
    }
  }

  #text({ text, tokens }: Tokens.Text): void {
    if (tokens === undefined) this.#words(text);
    else this.inline(tokens);
  }

  #styled(style: Style, tokens: readonly Token[]): void {
    this.builder.styled(style, () => this.inline(tokens));
  }

  #code({ text, lang = "", raw }: Tokens.Code): void {
    const info = lang.trim();
    const isLanguage = /^[^\s`]{1,40}$/.test(info);
    // An info of several words is more likely text behind a fence gone wrong than a language.
    const body = info === "" || isLanguage ? text : `${info}\n${text}`;
    const style: Style = { type: "pre", ...(isLanguage ? { language: info } : {}) };
    if (body.trim() === "") this.#words(raw.trim());
    else this.builder.styled(style, () => this.builder.append(body));
  }

  #list({ items, ordered, start, loose }: Tokens.List): void {
    for (const [at, item] of items.entries()) {
      if (at > 0) this.#gap(loose ? 2 : 1);
      const sign = ordered ? `${Number(start) + at}. ` : item.task ? "" : "• ";
      this.builder.append(item.tokens.length === 0 ? sign.trimEnd() : sign);
      const outer = this.#indent;
      this.#indent += "  ";
      this.blocks(item.tokens);
      this.#indent = outer;
    }
  }

  #table({ header, rows, align }: Tokens.Table): void {
    const texts = [header, ...rows].map((row) => row.map(({ tokens }) => textOf(tokens)));
    this.builder.styled({ type: "pre" }, () => this.builder.append(alignTable(texts, align)));
  }

  #link({ href, text, tokens, autolink }: Pick<Tokens.Link, "href" | "text" | "tokens" | "autolink">): void {
    const isLinked = isSafe(href) && !this.#showsAddresses;
    const shown = textOf(tokens).trim();
    const label = shown || text.trim() || href;
    const write = () => {
      if (shown !== "") this.inline(tokens);
      else this.#words(label);
    };
    if (isLinked) this.builder.styled({ type: "link", url: href }, write);
    else write();
    if (!isLinked && autolink !== true && label !== href) this.#words(` (${href})`);
  }

  #words(text: string): void {
    this.builder.append(text.replaceAll("\n", `\n${this.#indent}`));
  }

  #gap(lines: number, isUnindented = false): void {
    this.builder.gap("\n".repeat(lines) + (isUnindented ? "" : this.#indent));
  }
}

/** What a platform shows as a block of its own needs no indent, and would be torn by one. */
function hasOwnLines(token: Token): boolean {
  return token.type === "code" || token.type === "table" || token.type === "blockquote";
}

/** Whether an empty line follows a block. */
function endsBlank({ type, raw }: Token): boolean {
  return type === "space" || /\n[^\S\n]*\n\s*$/.test(raw);
}

function textOf(tokens: readonly Token[]): string {
  const renderer = new Renderer({ showsAddresses: true });
  renderer.inline(tokens);
  return renderer.builder.result().text;
}

function isSafe(href: string): boolean {
  return URL.canParse(href) && SAFE_PROTOCOLS.includes(new URL(href).protocol);
}
