// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
)

// Both providers add missing quotes.
func TestIfMatchWithoutQuotes(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	vm := computeGroup + "/virtualMachines/vm?api-version=2024-07-01"
	putResource(t, emu, computeGroup+"/virtualMachines/vm", `{"location":"eastus"}`)
	for _, c := range []struct{ id, body, details, compared string }{
		{lbID, lbBody(`{"name":"web"}`), "details", `W/\"invalid\" does not match etag ETAG of resource ` + lbID + ` in NRP data store.`},
		{vm, `{"location":"eastus"}`, "", `\"invalid\" does not match etag \"1\" of resource.`},
	} {
		etag := sendRequest(t, emu, http.MethodGet, c.id, "").stringField("etag")
		a := sendRequest(t, emu, http.MethodPut, c.id, c.body, "If-Match", "invalid")
		want := "Etag provided in if-match header " + strings.Replace(c.compared, "ETAG", strings.ReplaceAll(etag, `"`, `\"`), 1)
		if a.status != 412 || a.errorCode() != "PreconditionFailed" || !strings.Contains(a.raw, want) || strings.Contains(a.raw, "details") != (c.details != "") {
			t.Errorf("%s: %d %s\nwant %s", c.id, a.status, a.raw, want)
		}
		bare := strings.Trim(etag, `W/"`)
		if a := sendRequest(t, emu, http.MethodPut, c.id, c.body, "If-Match", bare); a.status != 200 {
			t.Errorf("%s: its etag without quotes: %d %s", c.id, a.status, a.raw)
		}
	}
}
