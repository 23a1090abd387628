import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// Each page is one self-contained file: it is mailed, archived and opened from file://. The mode names the page.
export default defineConfig(({ mode }) => ({
  plugins: [viteSingleFile()],
  build: { rollupOptions: { input: mode === "matrix" ? "matrix.html" : "report.html" }, emptyOutDir: false, target: "es2022" },
}));
