// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// Kubernetes versions from docs/reference/support.md.
const (
	oldestVersion = "1.30"
	newestVersion = "1.37"
)

const maxResponseBytes = 64 << 10

func (d Doctor) checkAPIServer(ctx context.Context) (items []Check, answers bool) {
	const server = "API server"
	silent := func(err error) ([]Check, bool) {
		checks := noResponse(ctx, err)
		checks[0].Name, checks[0].Why = server, d.REST.Host+": "+checks[0].Why
		checks[0].Fix = "see whether the kubeconfig names the right cluster, and the way to it: kubectl version"
		return checks, false
	}
	base, _, err := rest.DefaultServerUrlFor(d.REST)
	if err != nil {
		return silent(err)
	}
	hc, err := rest.HTTPClientFor(d.REST)
	if err != nil {
		return silent(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), http.NoBody)
	if err != nil {
		return silent(err)
	}
	sent := time.Now()
	resp, err := hc.Do(req)
	if err != nil {
		return silent(err)
	}
	defer func() { _ = resp.Body.Close() }()
	elapsed := time.Since(sent)
	var info apiversion.Info
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	if err == nil && resp.StatusCode == http.StatusOK {
		err = json.Unmarshal(body, &info)
	}
	switch {
	case err != nil:
		return silent(err)
	case resp.StatusCode != http.StatusOK:
		return silent(fmt.Errorf("its version request returned %s", resp.Status))
	}
	v := checkVersion(info.GitVersion)
	v.Name = server
	return []Check{v, compareClock("clock of the API server", resp.Header.Get("Date"), sent, elapsed)}, true
}

func checkVersion(of string) Check {
	parsed, err := version.ParseGeneric(of)
	if err != nil {
		return Check{Result: Unknown, Why: fmt.Sprintf("its version %q cannot be parsed", of)}
	}
	minor := version.MajorMinor(parsed.Major(), parsed.Minor())
	switch {
	case minor.LessThan(version.MustParseGeneric(oldestVersion)):
		return Check{Result: Fail, Why: fmt.Sprintf("Kubernetes %s is older than %s", parsed, oldestVersion), Fix: "a newer cluster: see docs/reference/support.md"}
	case version.MustParseGeneric(newestVersion).LessThan(minor):
		return Check{Result: Warn, Why: fmt.Sprintf("Kubernetes %s is newer than %s, which Weir was tested with", parsed, newestVersion), Fix: "see whether there is a newer Weir"}
	}
	return Check{Result: OK, Why: fmt.Sprintf("Kubernetes %s", parsed)}
}

// Tolerated clock skew. A Date header has whole seconds; tokens are accepted five minutes before they become
// valid.
const (
	warnSkew = 5 * time.Second
	maxSkew  = 5 * time.Minute
)

func compareClock(name, date string, sent time.Time, elapsed time.Duration) Check {
	remote, err := http.ParseTime(date)
	if err != nil {
		return Check{Name: name, Result: Unknown, Why: "its response has no date"}
	}
	// The Date is truncated to a second and was set between request and response.
	ahead := remote.Add(500 * time.Millisecond).Sub(sent.Add(elapsed / 2))
	direction, off := "behind", -ahead
	if ahead > 0 {
		direction, off = "ahead of", ahead
	}
	reason := fmt.Sprintf("%s %s that of this machine", off.Round(time.Second), direction)
	switch {
	case off-elapsed/2 >= maxSkew:
		return Check{Name: name, Result: Fail, Why: reason, Fix: "set one of the two right: tokens and pauses are judged by them"}
	case off-elapsed/2 >= warnSkew:
		return Check{Name: name, Result: Warn, Why: reason, Fix: "set one of the two right: see chronyc tracking, or timedatectl"}
	}
	return Check{Name: name, Result: OK, Why: "as that of this machine, to some seconds"}
}
