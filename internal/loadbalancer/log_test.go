// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The log names the Services of a write and each created or deleted public IP.
func TestTheLogNamesWhatIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newStage()
		s.stop()
		s.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		s.launch()
		defer func() { s.close() }()
		output := func() []string {
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			log.Reset()
			slices.Sort(lines)
			return lines
		}
		s.change(edit{name: "shop/a", spec: map[string]string{"ports": "80"}})
		if _, results := s.rehearse(); len(results) != 1 || log.Len() > 0 {
			t.Errorf("a rehearsal of %d Services, which writes nothing, says\n%s", len(results), log.String())
		}
		s.applyAll(`shop/a: {ports: 80}`)
		s.settle(time.Hour)
		s.remove("shop/a")
		s.settle(time.Hour)
		want := []string{
			`level=INFO msg="load balancer deleted: nothing is left on it" loadBalancer=kubernetes services=shop/a`,
			`level=INFO msg="load balancer written" loadBalancer=kubernetes services=shop/a changes=4`,
			`level=INFO msg="public IP created" publicIP=kubernetes-a001 resourceGroup=rg address=198.18.0.1 service=shop/a`,
			`level=INFO msg="public IP deleted" publicIP=kubernetes-a001 resourceGroup=rg address=198.18.0.1 service=shop/a`,
		}
		if got := output(); !slices.Equal(got, want) {
			t.Errorf("said\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		s.process.dead = true
		s.applyAll(`shop/a: {ports: 80}`)
		s.process.dead = false
		if r, _ := s.rehearse(); len(r.Shadow.ListChanges().PublicIPs) != 1 {
			t.Error("nothing was rehearsed")
		}
		if got := output(); len(got[0]) > 0 {
			t.Errorf("of a rehearsal it says what was not done: %s", got)
		}
		s.remove("shop/a")
		var many strings.Builder
		for i := range 12 {
			fmt.Fprintf(&many, "shop/m%02d: {ports: 80, azure-load-balancer-internal: \"true\"}\n", i)
		}
		s.applyAll(many.String())
		s.settle(time.Hour)
		const ten = "shop/m00, shop/m01, shop/m02, shop/m03, shop/m04, shop/m05, shop/m06, shop/m07, shop/m08, shop/m09 and 2 more"
		if got := strings.Join(output(), "\n"); !strings.Contains(got, ten) {
			t.Errorf("said\n%s\nwant\n%s", got, ten)
		}
	})
}
