// node build.mjs [OUT.wasm] (see build.sh): makes a component of decider.js. It imports nothing: the engine's clock, randomness, console
// and network are left out.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { componentize } from '@bytecodealliance/componentize-js';

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, 'ladder-javascript.wasm'));
const { component, imports } = await componentize({
  sourcePath: join(here, 'decider.js'),
  witPath: join(here, 'wit/decider.wit'),
  worldName: 'decider',
  disableFeatures: ['random', 'clocks', 'stdio', 'http', 'fetch-event'],
});
if (imports.length > 0) throw new Error(`the component imports ${imports.map((name) => name.join('.')).join(', ')}`);
await mkdir(dirname(out), { recursive: true });
await writeFile(out, component);
console.log(`${out}  ${component.length} bytes`);
