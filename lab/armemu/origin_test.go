// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/worlds"
)

func formatOrigins(emu *armemu.Emulator) string {
	names := map[string]string{"": "hand", armemu.CallerID("token"): "weir", armemu.CallerID("other"): "other"}
	var origins []string
	for _, e := range emu.Entries(strings.ToUpper(poolID)) {
		text := e.Name + " by " + names[e.AddedBy]
		if e.Down {
			text += ", Down by " + names[e.DownBy]
		}
		origins = append(origins, text)
	}
	return strings.Join(origins, "; ")
}

// Removing and adding an address again changes its origin; repeating it does not.
func TestWriterOfAddressIsRecorded(t *testing.T) {
	emu := newCloud(t, armemu.Options{Behavior: worlds.BatchedWrites()})
	a, b, c := poolEntry("a", ip(1), ""), poolEntry("b", ip(2), ""), poolEntry("c", ip(3), "")
	for _, step := range []struct {
		by, body, want string
		whole          bool
	}{
		{by: "token", body: poolWith(inVNet, a), want: "a by weir"},
		{by: "other", body: poolWith(inVNet, a, b), want: "a by weir; b by other"},
		{by: "token", body: poolWith(inVNet, poolEntry("a", ip(1), "Down"), b, c), want: "a by weir, Down by weir; b by other; c by weir"},
		{by: "", body: poolWith(inVNet, poolEntry("a", ip(1), "Down"), poolEntry("b", ip(2), "Down"), c), want: "a by weir, Down by weir; b by other, Down by hand; c by weir"},
		{by: "token", body: poolWith(inVNet, a, poolEntry("b", ip(2), "Down")), want: "a by weir; b by other, Down by hand", whole: true},
		{by: "other", body: poolWith(inVNet, poolEntry("b", ip(2), "Down")), want: "b by other, Down by hand"},
		{by: "token", body: poolWith(inVNet, a, b), want: "a by weir; b by other"},
	} {
		id, body := poolID, step.body
		if step.whole {
			id, body = lbID, lbBody(strings.Replace(body, "{", `{"name":"web",`, 1))
		}
		switch step.by {
		case "":
			if err := emu.Put(id, []byte(body)); err != nil {
				t.Fatal(err)
			}
		default:
			if got := sendRequest(t, emu, http.MethodPut, id, body, "Authorization", "Bearer "+step.by); got.status >= 300 {
				t.Fatalf("%d %s", got.status, got.raw)
			}
		}
		if got := formatOrigins(emu); got != step.want {
			t.Errorf("after %s by %q: %s, want %s", step.body, step.by, got, step.want)
		}
		if raw := fmt.Sprint(string(emu.Snapshot())); strings.Contains(raw, "origin") {
			t.Fatalf("it is shown: %s", raw)
		}
	}
}

func TestAWriteThatIsTakenBackPutNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1})
		sendRequest(t, emu, http.MethodPut, poolID, poolWith(inVNet, poolEntry("a", ip(1), "")), "Authorization", "Bearer other")
		time.Sleep(time.Hour)
		if err := emu.SetFaults("rules: [{match: {kind: put}, action: {operation: {fail: {code: InternalServerError}}}}]"); err != nil {
			t.Fatal(err)
		}
		sendRequest(t, emu, http.MethodPut, poolID, poolWith(inVNet, poolEntry("a", ip(1), "Down")))
		if got := formatOrigins(emu); got != "a by other, Down by weir" {
			t.Errorf("under way: %s", got)
		}
		time.Sleep(time.Hour)
		if got := formatOrigins(emu); got != "a by other" {
			t.Errorf("taken back: %s", got)
		}
	})
}
