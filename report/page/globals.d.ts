// What the scripts of the page use in addition to the browser's own.
declare const d3: any;
interface ObjectConstructor {
  hasOwn(object: object, name: string): boolean;
}
declare class DecompressionStream {
  constructor(format: "deflate");
  readonly readable: ReadableStream;
  readonly writable: WritableStream;
}
