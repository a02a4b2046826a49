// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io"
	"os"
	"time"

	"weir.dev/weir/internal/lb/behavior"
)

// loadBehavior reads the report of --azure-behaviour; zero without the flag.
func loadBehavior(o Options) (behavior.Behavior, error) {
	none := behavior.Behavior{}
	if o.AzureBehaviour == "" {
		return none, nil
	}
	report, err := readReport(o.AzureBehaviour)
	if err != nil {
		return none, &UsageError{Err: fmt.Errorf("--azure-behaviour: %w", err)}
	}
	if report.Cloud == behavior.EmulatorCloud && o.AzureEndpoint == "" {
		return none, &UsageError{Err: fmt.Errorf("--azure-behaviour: %s: cloud %q: that is no Azure: run weirlab probe-azure without --azure-endpoint", o.AzureBehaviour, report.Cloud)}
	}
	o.Log.Info("what is assumed of Azure is replaced by what a probe has found out", "file", o.AzureBehaviour, "differs", report.Behaviour.String(),
		"probed", report.When.UTC().Format(time.RFC3339), "location", report.Location, "by", report.Version)
	return report.Behaviour, nil
}

func readReport(path string) (behavior.Report, error) {
	file, err := os.Open(path) //nolint:gosec // whoever starts it names the file
	if err != nil {
		return behavior.Report{}, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, behavior.MaxReport+1))
	if err != nil {
		return behavior.Report{}, fmt.Errorf("%s: %w", path, err)
	}
	report, err := behavior.ParseReport(text)
	if err != nil {
		return behavior.Report{}, fmt.Errorf("%s: %w", path, err)
	}
	return report, nil
}
