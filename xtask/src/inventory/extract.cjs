// Reads declaration files with the TypeScript compiler's parser and prints the facts of them as JSON: names of types, their
// fields, whether those are optional, and coarse types. No comments, no values, and nothing is run of what is read.
//
// node extract.cjs TYPESCRIPT_DIRECTORY PACKAGE_DIRECTORY
//
// A type is an object of fields (`"name"`, or `"name?"` for an optional one), or a list of what it may be. What a field may
// be is written as atoms with ` | ` between them: `string`, `number`, `boolean`, `null`, `any`, `object`, `function`, a
// `'literal'`, a number, `true`, `false`, the name of a type here, `@Name` for one of another package, `atom[]`, or `{atom}`
// for a map of strings to atoms. Objects without a name get that of where they are: `Type.field`, with `:tag` or `#number`
// behind it where a union has several.

'use strict';

const crypto = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');

const [, , typescript, directory] = process.argv;
const ts = require(path.resolve(typescript));
const K = ts.SyntaxKind;

/** How many members an unnamed set of strings may have before it gets lines of its own. */
const LARGEST_INLINE_UNION = 4;

/** Fields that tell the members of a union apart, the best first. */
const TAGS = ['hook_event_name', 'hookEventName', 'subtype', 'type', 'kind', 'behavior', 'status'];

class Module {
  constructor(file) {
    const text = fs.readFileSync(path.join(directory, file), 'utf8');
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, false, ts.ScriptKind.TS);
    if (source.parseDiagnostics.length > 0) {
      throw new Error(`${file} does not parse: ${source.parseDiagnostics[0].messageText}`);
    }
    this.text = text;
    this.declared = new Map();
    this.functions = {};
    this.constants = {};
    this.types = {};
    this.busy = new Set();
    for (const statement of source.statements) this.collect(statement);
    for (const name of [...this.declared.keys()].sort()) this.named(name);
  }

  collect(statement) {
    switch (statement.kind) {
      case K.TypeAliasDeclaration:
      case K.InterfaceDeclaration:
      case K.ClassDeclaration:
        this.declared.set(statement.name.text, statement);
        break;
      case K.FunctionDeclaration:
        if (isExported(statement)) this.functions[statement.name.text] = statement;
        break;
      case K.VariableStatement:
        if (!isExported(statement)) break;
        for (const { name, type, initializer } of statement.declarationList.declarations) {
          const value = constant(type) ?? constant(initializer);
          if (value !== undefined) this.constants[name.text] = value;
        }
        break;
      default:
    }
  }

  /** Has the type with that name in `types`. */
  named(name) {
    if (name in this.types || this.busy.has(name)) return;
    this.busy.add(name);
    const node = this.declared.get(name);
    if (node.kind === K.TypeAliasDeclaration) this.define(name, this.read(node.type, name));
    else this.define(name, { object: this.members(node, name) });
    this.busy.delete(name);
  }

  define(name, read) {
    this.types[name] = read.object ?? [...new Set(read.atoms)].sort();
  }

  /** The fields of a literal or an interface, those of what it extends included. */
  members(node, place) {
    const fields = {};
    for (const clause of node.heritageClauses ?? []) {
      for (const parent of clause.types) {
        if (this.declared.has(parent.expression.text)) {
          Object.assign(fields, this.objects(parent, place)[0]);
        }
      }
    }
    for (const member of node.members) {
      const name = member.name?.text;
      if (member.kind === K.IndexSignature) {
        fields['[string]'] = this.field(member.type, `${place}.*`);
      } else if (typeof name === 'string' && !name.startsWith('__@')) {
        const key = name + (member.questionToken ? '?' : '');
        const isMethod = member.kind === K.MethodSignature || member.kind === K.MethodDeclaration;
        fields[key] = isMethod ? 'function' : this.field(member.type, `${place}.${name}`);
      }
    }
    return fields;
  }

  /** What a field may be, in a line; what has fields of its own gets a name. */
  field(node, place) {
    const read = this.read(node, place);
    if (read.object) {
      this.define(place, read);
      return place;
    }
    const atoms = [...new Set(read.atoms)];
    if (atoms.length > LARGEST_INLINE_UNION) {
      this.define(place, { atoms });
      return place;
    }
    return atoms.sort().join(' | ');
  }

  /** The place of a list's elements: the list's own, unless that is a name of the list. */
  element(place) {
    return this.declared.has(place) ? `${place}:element` : place;
  }

  /** One atom for what `node` may be, for within a list or a map. */
  atom(node, place) {
    const written = this.field(node, place);
    if (!written.includes(' | ')) return written;
    this.define(place, { atoms: written.split(' | ') });
    return place;
  }

  /** `{ object: fields }`, or `{ atoms }`. */
  read(node, place) {
    const atoms = (...list) => ({ atoms: list });
    if (!node) return atoms('any');
    switch (node.kind) {
      case K.StringKeyword: return atoms('string');
      case K.TemplateLiteralType: return atoms('string');
      case K.NumberKeyword: return atoms('number');
      case K.BooleanKeyword: return atoms('boolean');
      case K.UndefinedKeyword: case K.VoidKeyword: case K.NeverKeyword: return atoms();
      case K.ObjectKeyword: return atoms('object');
      case K.FunctionType: return atoms('function');
      case K.ParenthesizedType: return this.read(node.type, place);
      case K.TypeOperator: return this.read(node.type, place);
      case K.ArrayType: return atoms(`${this.atom(node.elementType, this.element(place))}[]`);
      case K.TupleType: {
        const elements = this.elements(node);
        if (elements.length === 0) return atoms('any[]');
        const union = { kind: K.UnionType, types: elements };
        return atoms(`${this.atom(union, this.element(place))}[]`);
      }
      case K.LiteralType: return atoms(literal(node.literal));
      case K.TypeLiteral: {
        const fields = this.members(node, place);
        const keys = Object.keys(fields);
        if (keys.length === 0) return atoms('object');
        if (keys.length === 1 && keys[0] === '[string]') {
          const inner = fields['[string]'];
          if (inner.includes(' | ')) this.define(`${place}.*`, { atoms: inner.split(' | ') });
          return atoms(`{${inner.includes(' | ') ? `${place}.*` : inner}}`);
        }
        return { object: fields };
      }
      case K.UnionType: return this.union(node.types, place);
      case K.IntersectionType: return this.intersection(node, place);
      case K.TypeReference: return this.reference(node, place);
      case K.IndexedAccessType: return this.indexed(node);
      case K.ExpressionWithTypeArguments: return this.reference({ ...node, typeName: node.expression }, place);
      default: return atoms('any');
    }
  }

  /** What the elements of a tuple may be, each kind once: whether there may be none is no fact of the wire. */
  elements(tuple) {
    const kinds = new Map();
    for (const element of tuple.elements) {
      const type = element.kind === K.NamedTupleMember || element.kind === K.OptionalType ? element.type : element;
      const node = type.kind === K.RestType ? bare(type.type).elementType : type;
      kinds.set(this.text.slice(node.pos, node.end).replace(/\s+/g, ' ').trim(), node);
    }
    return [...kinds.values()];
  }

  union(nodes, place) {
    const flat = nodes.flatMap((node) => (bare(node).kind === K.UnionType ? bare(node).types : [node])).map(bare);
    const unnamed = flat.filter((node) => node.kind === K.TypeLiteral || node.kind === K.IntersectionType);
    const tags = unnamed.map(syntacticTag);
    const atoms = flat.flatMap((node) => {
      const index = unnamed.indexOf(node);
      if (index < 0) {
        const read = this.read(node, place);
        if (!read.object) return read.atoms;
        this.define(`${place}:object`, read);
        return [`${place}:object`];
      }
      const isUnique = tags[index] !== undefined && tags.indexOf(tags[index]) === tags.lastIndexOf(tags[index]);
      const name = `${place}:${isUnique ? tags[index] : unnamed.length === 1 ? 'object' : `#${index + 1}`}`;
      const read = this.read(node, name);
      if (!read.object) return read.atoms;
      this.define(name, read);
      return [name];
    });
    return { atoms };
  }

  intersection(node, place) {
    let merged = [{}];
    for (const part of node.types) {
      const options = this.objects(part, place);
      if (options.length === 0) continue;
      merged = merged.flatMap((left) => options.map((right) => ({ ...left, ...right })));
    }
    if (merged.length === 1) return { object: merged[0] };
    const names = merged.map((object, index) => {
      const name = `${place}:#${index + 1}`;
      this.define(name, { object });
      return name;
    });
    return { atoms: names };
  }

  /** The objects that a part of an intersection may be. */
  objects(node, place) {
    const read = this.read(node, place);
    if (read.object) return [read.object];
    return read.atoms.flatMap((atom) => {
      if (!this.declared.has(atom) && !(atom in this.types)) return [];
      if (this.declared.has(atom)) this.named(atom);
      const type = this.types[atom];
      if (type === undefined) throw new Error(`${place} is made of itself by ${atom}`);
      return Array.isArray(type) ? type.map((name) => this.types[name]).filter((it) => it && !Array.isArray(it)) : [type];
    });
  }

  reference(node, place) {
    const name = node.typeName.text ?? node.typeName.right?.text;
    const [first, second] = node.typeArguments ?? [];
    switch (name) {
      case 'Array': case 'ReadonlyArray': case 'Set':
        return { atoms: [`${this.atom(first, this.element(place))}[]`] };
      case 'Record': case 'Map':
        return { atoms: [`{${this.atom(second, place)}}`] };
      case 'Promise': case 'Readonly': case 'NonNullable': case 'Partial': case 'Required':
        return this.read(first, place);
      case 'Omit': case 'Pick': {
        const keys = new Set(this.read(second, place).atoms.map((atom) => atom.slice(1, -1)));
        const [object] = this.objects(first, place);
        const kept = Object.entries(object ?? {}).filter(([key]) => {
          return keys.has(key.replace(/\?$/, '')) === (name === 'Pick');
        });
        return { object: Object.fromEntries(kept) };
      }
      default:
        // By the letters of its name `coreTypes.Name` is the `Name` here.
        if (this.declared.has(name)) {
          this.named(name);
          return { atoms: [name] };
        }
        return { atoms: [`@${name}`] };
    }
  }

  /** A field's type, by the type and the field. */
  indexed(node) {
    const name = node.objectType.typeName?.text;
    const field = node.indexType.literal?.text;
    if (name === undefined || field === undefined) return { atoms: ['any'] };
    if (!this.declared.has(name)) return { atoms: [`@${name}.${field}`] };
    this.named(name);
    const fields = this.types[name];
    const written = Array.isArray(fields) ? undefined : (fields?.[field] ?? fields?.[`${field}?`]);
    return { atoms: written?.split(' | ') ?? ['any'] };
  }

  /** What is told of functions: their parameters, and what they give back. */
  signatures() {
    const told = {};
    for (const [name, node] of Object.entries(this.functions)) {
      const parameters = {};
      for (const parameter of node.parameters) {
        const label = (parameter.name.text ?? '_').replace(/^_/, '') + (parameter.questionToken ? '?' : '');
        parameters[label] = this.field(parameter.type, `${name}(${label.replace(/\?$/, '')})`);
      }
      told[name] = { parameters, result: this.field(node.type, `${name}()`) };
    }
    return told;
  }
}

function isExported(node) {
  return node.modifiers?.some((modifier) => modifier.kind === K.ExportKeyword) ?? false;
}

function literal(node) {
  switch (node.kind) {
    case K.NullKeyword: return 'null';
    case K.TrueKeyword: return 'true';
    case K.FalseKeyword: return 'false';
    case K.StringLiteral:
      if (node.text.includes(' | ')) throw new Error(`a literal that cannot be told from two: ${node.text}`);
      return `'${node.text}'`;
    case K.NumericLiteral: return node.text;
    case K.PrefixUnaryExpression: return `-${node.operand.text}`;
    default: return 'any';
  }
}

/** The strings of a declared constant. What is written for people is told by its hash: enough to see that it changed. */
function constant(node) {
  if (!node) return undefined;
  if (node.kind === K.TypeOperator) return constant(node.type);
  if (node.kind === K.StringLiteral) return [name(node.text)];
  if (node.kind === K.LiteralType && node.literal.kind === K.StringLiteral) return [name(node.literal.text)];
  if (node.kind !== K.TupleType) return undefined;
  // In their own order, which may mean something.
  const parts = node.elements.map((element) => constant(element));
  return parts.every(Boolean) ? parts.flat() : undefined;
}

function name(text) {
  if (!/\s/.test(text)) return text;
  return `sha256:${crypto.createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
}

function bare(node) {
  return node.kind === K.ParenthesizedType ? bare(node.type) : node;
}

/** The literal that tells an object without a name apart. */
function syntacticTag(node) {
  if (node.kind === K.IntersectionType) return node.types.map(bare).map(syntacticTag).find(Boolean);
  if (node.kind !== K.TypeLiteral) return undefined;
  for (const key of TAGS) {
    const member = node.members.find((it) => it.name?.text === key);
    if (member?.type?.kind === K.LiteralType && member.type.literal.kind === K.StringLiteral) return member.type.literal.text;
  }
  return undefined;
}

/** The members of a named union, looked through unions of unions. */
function* leaves(types, name, seen = new Set()) {
  if (seen.has(name)) return;
  seen.add(name);
  const type = types[name];
  if (type === undefined) return;
  if (Array.isArray(type)) for (const atom of type) yield* leaves(types, atom, seen);
  else yield [name, type];
}

/** The strings that a field may have. */
function strings(types, written) {
  return written.split(' | ').flatMap((atom) => {
    const match = /^'(.*)'$/.exec(atom);
    if (match) return [match[1]];
    return Array.isArray(types[atom]) ? types[atom].flatMap((inner) => strings(types, inner)) : [];
  });
}

function indexed(types, root, key) {
  const index = {};
  for (const [name, fields] of leaves(types, root)) {
    for (const value of key(fields)) (index[value] ??= []).push(name);
  }
  for (const list of Object.values(index)) list.sort();
  return index;
}

function messages(types) {
  return indexed(types, 'StdoutMessage' in types ? 'StdoutMessage' : 'SDKMessage', (fields) =>
    strings(types, fields.type ?? '').flatMap((kind) => {
      const subtypes = strings(types, fields.subtype ?? '');
      return subtypes.length === 0 ? [kind] : subtypes.map((subtype) => `${kind}/${subtype}`);
    }),
  );
}

/** By the declarations' own habit the answer to `SDKControlXRequest` is `SDKControlXResponse`. */
function answers(types, requests) {
  const index = {};
  for (const [subtype, [name]] of Object.entries(requests)) {
    const answer = name.replace(/Request$/, 'Response');
    if (answer !== name && answer in types) index[subtype] = [answer];
  }
  return index;
}

/** Inputs and outputs of tools, by the name of the tool without `Input` and `Output`. */
function tools(types, root) {
  const index = {};
  for (const name of (types[root] ?? []).filter((it) => /(Input|Output)$/.test(it))) index[name.replace(/(Input|Output)$/, '')] = [name];
  return index;
}

function sorted(value) {
  if (Array.isArray(value) || value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

const sdk = new Module('sdk.d.ts');
const functions = sdk.signatures();
const requests = indexed(sdk.types, 'SDKControlRequestInner', (fields) => strings(sdk.types, fields.subtype ?? ''));
const toolModule = fs.existsSync(path.join(directory, 'sdk-tools.d.ts')) ? new Module('sdk-tools.d.ts') : { types: {} };
const facts = {
  messages: messages(sdk.types),
  control_requests: requests,
  control_responses: answers(sdk.types, requests),
  hook_inputs: indexed(sdk.types, 'HookInput', (fields) => strings(sdk.types, fields.hook_event_name ?? '')),
  hook_outputs: indexed(sdk.types, 'SyncHookJSONOutput.hookSpecificOutput', (fields) =>
    strings(sdk.types, fields.hookEventName ?? '')),
  functions,
  constants: sdk.constants,
  types: sdk.types,
  tool_inputs: tools(toolModule.types, 'ToolInputSchemas'),
  tool_outputs: tools(toolModule.types, 'ToolOutputSchemas'),
  tool_types: toolModule.types,
};
process.stdout.write(`${JSON.stringify(sorted(facts), null, 1)}\n`);
