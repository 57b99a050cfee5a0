"""Write a page that computes poses and collisions of a cell in WebAssembly.

The page is one file, without a server: it moves a joint by a slider, and says where the
tool is and whether links touch. Its module is called as `docs/elsewhere.md` says. Here
node computes with the same lines, where it is installed, and the numbers are compared.
"""

import base64
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import armillary as arm

MODULE = """\
const bytes = Uint8Array.from(atob("@WASM"), (c) => c.charCodeAt(0));
const { exports: lab } = new WebAssembly.Instance(new WebAssembly.Module(bytes));
lab.memory.grow(1);
const n = @JOINTS, q = lab.heap_base.value, pose = q + 8 * n, found = pose + 128;
function answer(positions) {
  new Float64Array(lab.memory.buffer, q, n).set(positions);
  lab.lab_pose(q, pose);
  lab.lab_check(q, found);
  const [touching] = new Float64Array(lab.memory.buffer, found, 1);
  return [touching, ...new Float64Array(lab.memory.buffer, pose, 16)];
}
"""
PAGE = """\
<!doctype html>
<meta charset="utf-8">
<title>A cell in WebAssembly</title>
<input id="joint" type="range" min="@LOWER" max="@UPPER" step="0.01" value="0">
<p id="text"></p>
<script>
@MODULE
const joint = document.getElementById("joint");
joint.oninput = () => {
  const positions = new Array(n).fill(0);
  positions[1] = Number(joint.value);
  const [touching, ...X] = answer(positions);
  const at = [X[3], X[7], X[11]].map((x) => x.toFixed(3)).join(", ");
  document.getElementById("text").textContent =
    `The tool is at ${at} m; links ${touching > 0 ? "touch" : "are apart"}.`;
};
joint.oninput();
</script>
"""

cell = arm.example("irb2400")
Q = np.random.default_rng(0).uniform(*cell.limits, (50, 6))
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    made = cell.compile_to(
        folder, ask=["pose=fk:tool0", "check"], target="wasm32", name="lab"
    )
    wasm = base64.b64encode((folder / "lab.wasm").read_bytes()).decode()
    module = MODULE.replace("@WASM", wasm).replace("@JOINTS", str(Q.shape[1]))
    page = PAGE.replace("@MODULE", module)
    for key, limit in zip(("@LOWER", "@UPPER"), cell.limits, strict=True):
        page = page.replace(key, f"{limit[1]:.2f}")
    (folder / "cell.html").write_text(page)
    print(f"The page has {len(page) / 1000:.0f} kB.")
    if shutil.which("node"):
        lines = f"console.log(JSON.stringify({json.dumps(Q.tolist())}.map(answer)));"
        (folder / "test.cjs").write_text(module + lines)
        done = subprocess.run(
            ["node", folder / "test.cjs"], capture_output=True, text=True, check=True
        )
        answers = np.array(json.loads(done.stdout))
        touching, poses = answers[:, 0] > 0.0, answers[:, 1:].reshape(-1, 4, 4)
        assert (touching == cell.collision()(Q)).all()
        assert np.abs(poses - cell.fk("tool0")(Q)).max() < 1e-14
        print(f"In {len(Q)} of {len(Q)} rows node finds the same.")
