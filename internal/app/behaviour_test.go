// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb/behavior"
)

func TestBehaviourOfAReport(t *testing.T) {
	for _, row := range []struct {
		name, text, endpoint string
		want                 behavior.Behavior
		wantText             string // in the log or the error
	}{
		{"an Azure", `{"behaviour": {"overlap": "mixed", "poolIfMatch": "honoured"}, "cloud": "AzurePublicCloud", "location": "westeurope", "when": "2026-11-22T09:00:00Z", "version": "1.2.0"}`, "",
			behavior.Behavior{Overlap: behavior.Mixed, PoolIfMatch: behavior.Enforced}, `differs="overlap=mixed" probed=2026-11-22T09:00:00Z location=westeurope by=1.2.0`},
		{"what somebody wrote", `{"behaviour": {"wholeWriteAddresses": "taken"}}`, "", behavior.Behavior{UpdateAddresses: behavior.Accepted}, `differs="wholeWriteAddresses=taken"`},
		{"an emulator, for an emulator", `{"behaviour": {}, "cloud": "emulator"}`, "http://127.0.0.1:1", behavior.Behavior{}, `differs="as assumed"`},
		{"an emulator, for Azure", `{"behaviour": {}, "cloud": "emulator"}`, "", behavior.Behavior{}, `: cloud "emulator": that is no Azure`},
		{"no answer", `{"behaviour": {"overlap": "never"}}`, "", behavior.Behavior{}, `: behaviour: overlap: "never" is invalid`},
		{"no JSON", `behaviour: {}`, "", behavior.Behavior{}, `: want a JSON object`},
		{"too large", strings.Repeat(" ", behavior.MaxReport+1), "", behavior.Behavior{}, `: larger than 1048576 bytes`},
	} {
		var out bytes.Buffer
		o := valid()
		o.Log = slog.New(slog.NewTextHandler(&out, nil))
		o.AzureEndpoint, o.AzureBehaviour = row.endpoint, filepath.Join(t.TempDir(), "report.json")
		if err := os.WriteFile(o.AzureBehaviour, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := loadBehavior(o)
		if err != nil {
			if _, usage := errors.AsType[*UsageError](err); !usage || !strings.HasPrefix(err.Error(), "--azure-behaviour: "+o.AzureBehaviour) {
				t.Errorf("%s: %v", row.name, err)
			}
			out.WriteString(err.Error())
		}
		if got != row.want || !strings.Contains(out.String(), row.wantText) || strings.Count(out.String(), "\n") > 1 {
			t.Errorf("%s: got %+v, and it says %s", row.name, got, out.String())
		}
	}
	o := valid()
	if got, err := loadBehavior(o); err != nil || got != (behavior.Behavior{}) {
		t.Errorf("without the flag: %+v, %v", got, err)
	}
	o.AzureBehaviour = "/nonexistent"
	if _, err := loadBehavior(o); err == nil || !strings.Contains(err.Error(), "--azure-behaviour: open /nonexistent") {
		t.Errorf("no file: %v", err)
	}
}

// A plan uses a probe report like the controller. Each new pool is written by itself, whatever Azure does with members in
// the write of the load balancer.
func TestAPlanByAReport(t *testing.T) {
	filled := `{"behaviour": {"wholeWriteNewPools": "filled"}, "cloud": "emulator"}`
	for _, row := range []struct {
		name, report string
		poolWrites   int
	}{
		{"without a report", "", 1},
		{"new pools are filled", filled, 1},
		{"a report of what is assumed", `{"behaviour": {"wholeWriteNewPools": "empty"}}`, 1},
	} {
		p, err := emptyCloud(t).plan(t, planned+"azure.json", readFile(t, planned+"shop.yaml"), func(o *PlanOptions) {
			if row.report != "" {
				o.AzureBehaviour = written(t, row.report)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if p.PoolWrites != row.poolWrites || !strings.Contains(p.FormatText(false), "+ 10.0.0.5 node-2") {
			t.Errorf("%s: %d writes of pools, want %d:\n%s", row.name, p.PoolWrites, row.poolWrites, p.FormatText(false))
		}
	}
	_, err := emptyCloud(t).plan(t, planned+"azure.json", "", func(o *PlanOptions) { o.AzureBehaviour = "/nonexistent" })
	if _, usage := errors.AsType[*UsageError](err); !usage || !strings.Contains(err.Error(), "--azure-behaviour: open /nonexistent") {
		t.Errorf("no file: %v", err)
	}
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
