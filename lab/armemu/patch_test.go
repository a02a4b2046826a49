// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/lab/armemu"
)

// Tags change at once: the response is Succeeded, has no operation and one new etag.
func TestPatchChangesTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1})
		s := story{t, emu}
		put(t, emu, pips+"ip", lb("Standard", static))
		put(t, emu, nics+"nic", `{"location":"eastus","properties":{"ipConfigurations":[]}}`)
		put(t, emu, nsgID, securityGroup())
		for _, id := range []string{pips + "ip", nics + "nic", nsgID, vnetID, lbID} {
			was := s.want(200, "", http.MethodGet, id, "")
			a := s.want(200, "", http.MethodPatch, id, `{"tags":{"owner":"b"}}`)
			if a.state() != "Succeeded" || a.text("etag") == was.text("etag") || !strings.Contains(a.raw, `"tags":{"owner":"b"}`) ||
				a.header.Get("Azure-AsyncOperation")+a.header.Get("Retry-After") != "" {
				t.Errorf("%s: %v %s", id, a.header, a.raw)
			}
			s.settled()
			if now := s.want(200, "", http.MethodGet, id, ""); now.text("etag") != a.text("etag") {
				t.Errorf("%s: the etag has changed again", id)
			}
			s.want(200, "", http.MethodPatch, id, `{"tags":{}}`)
			if now := s.want(200, "", http.MethodGet, id, ""); strings.Contains(now.raw, "owner") {
				t.Errorf("%s: a tag is left: %s", id, now.raw)
			}
			s.want(400, "InvalidRequestFormat", http.MethodPatch, id, `{"tags":{"n":1}}`)
			s.want(400, "InvalidRequestFormat", http.MethodPatch, id, `{"properties":{}}`)
		}
		calls := emu.Calls(armemu.OfKind(armemu.KindPatch))
		if len(calls) != 20 || !slices.Equal(calls[0].Actions, []string{"Microsoft.Network/publicIPAddresses/write"}) || calls[0].EtagAfter == calls[0].EtagBefore {
			t.Errorf("%d calls, %+v", len(calls), calls[0])
		}
	})
}

// Reverting a failed write retains tags.
func TestTagsOutliveAWriteThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1})
		s := story{t, emu}
		setFaults(t, emu, `rules: [{match: {kind: put}, action: {operation: {fail: {code: InternalServerError}}}}]`)
		s.want(200, "", http.MethodPut, poolID, poolBody("10.0.0.1"))
		s.want(200, "", http.MethodPatch, lbID, `{"tags":{"owner":"b"}}`)
		s.settled()
		if now := s.want(200, "", http.MethodGet, lbID, ""); !strings.Contains(now.raw, `"owner":"b"`) || strings.Contains(now.raw, "10.0.0.1") || now.state() != "Updating" && now.state() != "Failed" {
			t.Errorf("%s", now.raw)
		}
	})
}

func TestPatchHeedsIfMatchAndLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1, Behaviour: behaviour.Behaviour{Overlap: behaviour.Lock}})
		if a := send(t, emu, http.MethodPatch, lbID, `{"tags":{}}`, "If-Match", `W/"other"`); a.status != 412 {
			t.Errorf("another etag: %d %s", a.status, a.raw)
		}
		send(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
		story{t, emu}.want(429, "RetryableError", http.MethodPatch, lbID, `{"tags":{}}`)
	})
}
