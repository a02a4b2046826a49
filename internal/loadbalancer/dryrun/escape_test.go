// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"encoding/json"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

// User-controlled tags, paths and names neither control the terminal nor imitate lines of the plan.
func TestTextThatTenantsWrite(t *testing.T) {
	evil := "x\x1b[2J\r\n- load balancer kubernetes\u202e\u009b31m"
	p := Report{Changes: 1, Resources: []ResourceReport{{
		Kind: ReportPublicIP, Name: evil, ResourceGroup: evil, Action: lb.ActionModify, Service: evil,
		Fields: []FieldReport{{Name: "tags." + evil, Was: &evil, Is: &evil}, {Name: evil, Added: []string{evil}, Removed: []string{evil}}},
		Parts:  []PartReport{{Kind: "pool", Name: evil, Action: lb.ActionAdd, Members: []MemberReport{{Action: lb.ActionAdd, Address: "10.0.0.1", Name: evil}}}},
	}}}
	p.Services = []ServiceReport{{Service: evil, Refused: evil}, {Service: evil, Note: evil, Failed: evil}}
	p.Pools, p.Notes = []PoolReport{{BackendPool: evil, Why: evil}}, []string{evil}
	text := p.FormatText(false)
	if at := strings.IndexAny(text, "\x1b\r\u202e\u009b"); at >= 0 {
		t.Errorf("it steers the terminal: %q", text[max(0, at-40):])
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "- ") {
			t.Errorf("a line that is none of the plan's: %q", line)
		}
	}
	if got := strings.Count(text, "\n"); got != 16 {
		t.Errorf("%d lines\n%s", got, text)
	}
	if colourful := p.FormatText(true); strings.Count(colourful, "\x1b[2J") != 0 || !strings.Contains(colourful, "\x1b[33m~") {
		t.Errorf("%q", colourful)
	}
	raw, err := p.FormatJSON()
	var second Report
	if err != nil || json.Unmarshal(raw, &second) != nil || second.Notes[0] != evil || strings.ContainsAny(string(raw), "\x1b\r\u202e\u009b") {
		t.Errorf("%v: %s", err, raw)
	}
}
