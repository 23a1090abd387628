import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// One self-contained file: a report is mailed, archived and opened from file://.
export default defineConfig({
  plugins: [viteSingleFile()],
  build: { rollupOptions: { input: "report.html" }, emptyOutDir: false, target: "es2022" },
});
