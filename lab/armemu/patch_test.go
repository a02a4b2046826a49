// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
)

func TestPatchChangesTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1})
		s := emulatorScenario{t, emu}
		putResource(t, emu, pips+"ip", lb("Standard", static))
		putResource(t, emu, nics+"nic", `{"location":"eastus","properties":{"ipConfigurations":[]}}`)
		putResource(t, emu, nsgID, securityGroup())
		for _, id := range []string{pips + "ip", nics + "nic", nsgID, vnetID, lbID} {
			before := s.expectAnswer(200, "", http.MethodGet, id, "")
			a := s.expectAnswer(200, "", http.MethodPatch, id, `{"tags":{"owner":"b"}}`)
			if a.provisioningState() != "Succeeded" || a.stringField("etag") == before.stringField("etag") || !strings.Contains(a.raw, `"tags":{"owner":"b"}`) ||
				a.header.Get("Azure-AsyncOperation")+a.header.Get("Retry-After") != "" {
				t.Errorf("%s: %v %s", id, a.header, a.raw)
			}
			s.waitForOperations()
			if now := s.expectAnswer(200, "", http.MethodGet, id, ""); now.stringField("etag") != a.stringField("etag") {
				t.Errorf("%s: the etag has changed again", id)
			}
			s.expectAnswer(200, "", http.MethodPatch, id, `{"tags":{}}`)
			if now := s.expectAnswer(200, "", http.MethodGet, id, ""); strings.Contains(now.raw, "owner") {
				t.Errorf("%s: a tag is left: %s", id, now.raw)
			}
			s.expectAnswer(400, "InvalidRequestFormat", http.MethodPatch, id, `{"tags":{"n":1}}`)
			s.expectAnswer(400, "InvalidRequestFormat", http.MethodPatch, id, `{"properties":{}}`)
		}
		calls := emu.Calls(armemu.ByKind(armemu.KindPatch))
		if len(calls) != 20 || !slices.Equal(calls[0].Actions, []string{"Microsoft.Network/publicIPAddresses/write"}) || calls[0].EtagAfter == calls[0].EtagBefore {
			t.Errorf("%d calls, %+v", len(calls), calls[0])
		}
	})
}

func TestTagsOutliveAWriteThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1})
		s := emulatorScenario{t, emu}
		setFaults(t, emu, `rules: [{match: {kind: put}, action: {operation: {fail: {code: InternalServerError}}}}]`)
		s.expectAnswer(200, "", http.MethodPut, poolID, poolBody("10.0.0.1"))
		s.expectAnswer(200, "", http.MethodPatch, lbID, `{"tags":{"owner":"b"}}`)
		s.waitForOperations()
		if now := s.expectAnswer(200, "", http.MethodGet, lbID, ""); !strings.Contains(now.raw, `"owner":"b"`) || strings.Contains(now.raw, "10.0.0.1") || now.provisioningState() != "Updating" && now.provisioningState() != "Failed" {
			t.Errorf("%s", now.raw)
		}
	})
}

func TestPatchHeedsIfMatchAndLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1, Behavior: behavior.Behavior{Overlap: behavior.Lock}})
		if a := sendRequest(t, emu, http.MethodPatch, lbID, `{"tags":{}}`, "If-Match", `W/"other"`); a.status != 412 {
			t.Errorf("another etag: %d %s", a.status, a.raw)
		}
		sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
		emulatorScenario{t, emu}.expectAnswer(429, "RetryableError", http.MethodPatch, lbID, `{"tags":{}}`)
	})
}
