// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
)

func TestSnapshotRestoresEverythingEtagsIncluded(t *testing.T) {
	emu := newCloud(t, armemu.Options{Seed: 1})
	putResource(t, emu, lbID+"/backendAddressPools/nics", `{"name":"nics","properties":{"backendIPConfigurations":[{"id":"/nic/1"}]}}`)
	sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
	before := emu.Snapshot()
	sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.2"))
	sendRequest(t, emu, http.MethodDelete, lbID+"/backendAddressPools/spare", "")
	if string(emu.Snapshot()) == string(before) {
		t.Fatal("writes left the snapshot as it was")
	}
	for name, target := range map[string]*armemu.Emulator{"same": emu, "empty": armemu.New(armemu.Options{Seed: 99})} {
		if err := target.Restore(before); err != nil {
			t.Fatal(err)
		}
		if got := string(target.Snapshot()); got != string(before) {
			t.Errorf("%s emulator restored\n%s\nwant\n%s", name, got, before)
		}
	}
}

func TestRevisionGrowsWithChanges(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	before := emu.Revision()
	for _, read := range []string{poolID, lbID, group + "/loadBalancers"} {
		sendRequest(t, emu, http.MethodGet, read, "")
	}
	if emu.Revision() != before {
		t.Errorf("reads led from revision %d to %d", before, emu.Revision())
	}
	sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
	if emu.Revision() == before {
		t.Error("a write left the revision as it was")
	}
	setFaults(t, emu, `rules: [{match: {method: GET}, action: {bumpEtag: true}}]`)
	sendRequest(t, emu, http.MethodGet, poolID, "")
}

func TestRestoreTakesChildrenOnTheirOwn(t *testing.T) {
	emu := armemu.New(armemu.Options{})
	err := emu.Restore([]byte(`[
		{"id":"` + poolID + `","body":` + poolBody("10.0.0.7") + `},
		{"id":"` + lbID + `","body":{"etag":"W/\"kept\"","location":"eastus","sku":{"name":"Standard"}}}]`))
	if err != nil {
		t.Fatal(err)
	}
	if got := poolIPs(t, emu, poolID); len(got) != 1 {
		t.Errorf("the pool holds %v", got)
	}
	if a := sendRequest(t, emu, http.MethodGet, poolID, ""); a.stringField("etag") != `W/"kept"` {
		t.Errorf("etag %s", a.stringField("etag"))
	}
}

func TestBadSnapshotChangesNothing(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	before := string(emu.Snapshot())
	cases := map[string]string{
		`{"id":"x"}`: "array",
		`[{"id":"/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/natGateways/n","body":{}}]`: "natGateways",
		`[{"id":"` + poolID + `","body":{}}]`:                    "parent",
		`[{"id":"` + lbID + `","body":{"properties":7}}]`:        "properties must be an object",
		`[{"id":"` + group + `/loadBalancers","body":{}}]`:       "no single resource",
		`[{"id":"` + lbID + `","body":{}},{"id":"","body":{}}]`:  "segment",
		`[{"id":"` + lbID + `","body":"text"}]`:                  "JSON object",
		`[{"id":"` + lbID + `/backendAddressPools","body":null}`: "array",
	}
	for snapshot, want := range cases {
		err := emu.Restore([]byte(snapshot))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to say %q", snapshot, err, want)
		}
	}
	if string(emu.Snapshot()) != before {
		t.Error("a bad snapshot changed the cloud")
	}
}

func TestSameSeedSameAnswers(t *testing.T) {
	run := func(seed uint64) string {
		emu := newCloud(t, armemu.Options{Seed: seed})
		a := sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
		return a.raw + a.header.Get("Azure-AsyncOperation") + a.header.Get("x-ms-request-id")
	}
	if first, second := run(4), run(4); first != second {
		t.Error("seed 4 gave two different answers")
	}
	if run(4) == run(5) {
		t.Error("seeds 4 and 5 gave the same answer")
	}
}

func setFaults(t testing.TB, emu *armemu.Emulator, script string) {
	t.Helper()
	if err := emu.SetFaults(script); err != nil {
		t.Fatal(err)
	}
}
