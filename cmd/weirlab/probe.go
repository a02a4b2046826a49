// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/app/process"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/probe"
)

// openQuestionsError reports a probe with unanswered questions.
type openQuestionsError struct{ open, all int }

func (e openQuestionsError) Error() string {
	return fmt.Sprintf("%d of %d questions are open", e.open, e.all)
}
func (openQuestionsError) ExitCode() int { return 3 }

type probeFlags struct {
	probeOptions
	clean  bool
	out    string
	output string
}

func newProbeCommand() *cobra.Command {
	var p probeFlags
	cmd := &cobra.Command{
		Use:   "probe-azure",
		Short: "Find out how Azure behaves where its documentation is silent",
		Long: `Creates one disposable resource group in your subscription, tests the behavior of Azure that
Weir depends on and no documentation describes, deletes the group, and prints a report without
names or IDs that you can publish. With --out it also writes the report as JSON, which
weir controller --azure-behaviour and weirlab emulator --azure-behaviour use instead of their
assumptions.

It shows what it would create before it creates anything. After Ctrl-C it deletes what it created;
--clean deletes what a crashed run has left.

Exit codes: 0 every question is answered, 3 some are open, and the report shows why,
1 failed, 2 a flag or a file is wrong.`,
		Example: `  # With the identity, subscription and location of azure.json:
  weirlab probe-azure --config azure.json --out report.json

  # Somewhere else, without a question:
  weirlab probe-azure --config azure.json --location northeurope --vm-size Standard_B2ats_v2 --yes

  # After a crash:
  weirlab probe-azure --config azure.json --clean

  # Tried out on an emulator:
  weirlab emulator --latency-scale 0.1 &
  weirlab probe-azure --config azure.json --azure-endpoint http://127.0.0.1:8900 --yes`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.runProbe(cmd) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&p.ConfigFile, "config", config.DefaultPath, "azure.json: the cloud and the identity; all other keys are ignored")
	f.StringVar(&p.Subscription, "subscription", "", "where everything is made; empty: subscriptionId of azure.json")
	f.StringVar(&p.Location, "location", "", "region; empty: location of azure.json")
	f.StringVar(&p.VMSize, "vm-size", probe.DefaultVMSize, "size of the two machines")
	f.StringVar(&p.Image, "image", probe.DefaultImage, "what they run, publisher:offer:sku:version: a Linux that listens on port 22")
	f.BoolVar(&p.SkipConfirmation, "yes", false, "skip the confirmation")
	f.BoolVar(&p.clean, "clean", false, "delete the resource groups that earlier runs have left behind, and probe nothing")
	f.StringVar(&p.out, "out", "", "write the report as JSON to this file")
	f.StringVarP(&p.output, "output", "o", "text", "how to print the report: text or json")
	f.DurationVar(&p.Timeout, "timeout", 2*time.Hour, "stop asking after so long, and clean up")
	f.StringVar(&p.AzureEndpoint, "azure-endpoint", "", "an emulator on this machine instead of Azure, e.g. http://127.0.0.1:8900; only loopback is accepted")
	return cmd
}

func (p probeFlags) runProbe(cmd *cobra.Command) error {
	if p.output != "text" && p.output != "json" {
		return usageError{fmt.Errorf("--output %q: use text or json", p.output)}
	}
	log, err := app.NewLog(os.Stderr, "auto", 0)
	if err != nil {
		return err
	}
	p.Log, p.In = log, cmd.InOrStdin()
	p.Say = func(text string) { fmt.Fprintln(os.Stderr, process.SanitizeText(text)) }
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second signal ends the process
	if p.clean {
		return p.cleanProbes(ctx)
	}
	file, err := reserveFile(p.out)
	if err != nil {
		return usageError{fmt.Errorf("--out: %w", err)}
	}
	defer file.removeTemporary()
	report, failed := p.probeAzure(ctx)
	if failed != nil && report.CountOpen() == len(report.Properties) {
		return failed
	}
	if err := errors.Join(p.printReport(cmd, file, report), failed); err != nil {
		return err
	}
	if open := report.CountOpen(); open > 0 {
		return openQuestionsError{open, len(report.Properties)}
	}
	return nil
}

func (p probeFlags) printReport(cmd *cobra.Command, file *reservedFile, report behavior.Report) error {
	json, err := report.EncodeJSON()
	if err != nil {
		return err
	}
	text := []byte(probe.FormatReport(report))
	if p.output == "json" {
		text = json
	}
	if _, err := cmd.OutOrStdout().Write(text); err != nil {
		return err
	}
	return file.saveContent(json)
}

// reservedFile is an output file that was checked to be writable, so that a long probe does not lose its report.
type reservedFile struct{ temporary, path string }

// reserveFile creates a temporary file next to path; an empty path means none.
func reserveFile(path string) (*reservedFile, error) {
	if path == "" {
		return &reservedFile{}, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.CreateTemp(cmp.Or(filepath.Dir(path), "."), ".weir-probe-*")
	if err != nil {
		return nil, err
	}
	return &reservedFile{file.Name(), path}, file.Close()
}

func (r *reservedFile) saveContent(content []byte) error {
	if r.path == "" {
		return nil
	}
	if err := os.WriteFile(r.temporary, content, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(r.temporary, 0o644); err != nil { //nolint:gosec // for everybody to read
		return err
	}
	return os.Rename(r.temporary, r.path)
}

func (r *reservedFile) removeTemporary() {
	if r.temporary != "" {
		_ = os.Remove(r.temporary) // already moved if saved
	}
}
