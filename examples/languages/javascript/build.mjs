// node build.mjs OUT.wasm [SOURCE.js], in this folder (see build.sh): makes a component of decider.js, or of the source. It imports
// nothing: the engine's clock, randomness, console and network are left out.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

import { componentize } from '@bytecodealliance/componentize-js';

const [to, source = 'decider.js'] = process.argv.slice(2);
if (to === undefined) throw new Error('node build.mjs OUT.wasm [SOURCE.js]');
const out = resolve(to);
const { component, imports } = await componentize({
  sourcePath: resolve(source),
  witPath: resolve('wit/decider.wit'),
  worldName: 'decider',
  disableFeatures: ['random', 'clocks', 'stdio', 'http', 'fetch-event'],
});
if (imports.length > 0) throw new Error(`the component imports ${imports.map((name) => name.join('.')).join(', ')}`);
await mkdir(dirname(out), { recursive: true });
await writeFile(out, component);
console.log(`${out}  ${component.length} bytes`);
