// Unpack what Python packed: JSON, and arrays that it refers to.
//
// Layout of the bytes, after base64 and gzip: the length of the JSON (uint64, little
// endian), the JSON, then each array at the next multiple of 8 bytes. In the JSON an
// array is {"__binary_index": i, "dtype": "<f4"}; "lengths" has the bytes of each.

const TYPED_ARRAYS = {
  "<f8": Float64Array,
  "<f4": Float32Array,
  "<u4": Uint32Array,
  "<i4": Int32Array,
  "<u2": Uint16Array,
  "|u1": Uint8Array,
};

/** Return the data of the element of this id. */
async function unpacked(id) {
  const text = document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream();
  const gunzip = stream.pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(gunzip).arrayBuffer();
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const json = new TextDecoder().decode(new Uint8Array(buffer, 8, length));
  const data = JSON.parse(json);
  return withArrays(data, buffer, offsets(data.lengths, 8 + length));
}

/** Return where each array begins in the buffer. */
function offsets(lengths, start) {
  let end = start;
  return lengths.map((length) => {
    const begin = Math.ceil(end / 8) * 8;
    end = begin + length;
    return [begin, length];
  });
}

function withArrays(value, buffer, places) {
  if (value === null || typeof value !== "object") return value;
  if ("__binary_index" in value) {
    const Type = TYPED_ARRAYS[value.dtype];
    const [begin, length] = places[value.__binary_index];
    return new Type(buffer, begin, length / Type.BYTES_PER_ELEMENT);
  }
  for (const key of Object.keys(value)) {
    value[key] = withArrays(value[key], buffer, places);
  }
  return value;
}
