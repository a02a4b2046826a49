// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Real connections reach web's pods during a rolling restart, and the printed address answers.
func TestRealConnections(t *testing.T) {
	answered := ""
	last := connectionStep()
	count := last.check
	last.check = func(s *stage, ctx context.Context) error {
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(s.connections.url)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		answered = string(body)
		if err != nil {
			return err
		}
		return count(s, ctx)
	}
	opts, out, lines := realOptions(t, step{name: "deploy", run: (*stage).createWorkloads}, last)
	if err := Run(t.Context(), opts); err != nil {
		t.Fatalf("%v\n%s", err, lines)
	}
	s := summaryOf(t, out)
	c := s.Connections
	if c == nil || c.Attempted == 0 || c.Lost >= c.Attempted || !strings.HasPrefix(c.Address, "http://127.") {
		t.Fatalf("%+v", c)
	}
	t.Log(c)
	if !strings.HasPrefix(answered, "pod web-") || !strings.Contains(answered, " on node-") {
		t.Errorf("%s answers %q", c.Address, answered)
	}
	for _, want := range []string{"curl " + c.Address, c.String()} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("nothing says %q:\n%s", want, lines)
		}
	}
	checkLines(t, lines)
}
