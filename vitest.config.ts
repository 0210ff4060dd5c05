import { defineConfig } from "vitest/config";

const shared = { environment: "node" as const, testTimeout: 20_000, hookTimeout: 30_000 };

/** A folder that the caller sums up afterwards; one file for each run, since `npm test` has several. */
const reports = process.env.TEST_REPORTS;

export default defineConfig({
  test: {
    // End-to-end tests mostly wait for leases to end, so a third file fits on two cores.
    maxWorkers: 3,
    reporters: reports ? ["default", ["json", { outputFile: `${reports}/${process.pid}.json` }]] : ["default"],
    projects: [
      { test: { ...shared, name: "rules", include: ["test/rules/**/*.test.ts"] } },
      {
        test: {
          ...shared,
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/rules/**", "test/e2e/**"],
        },
      },
      {
        test: {
          ...shared,
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          testTimeout: 60_000,
        },
      },
    ],
  },
});
