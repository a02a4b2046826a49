// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"weir.dev/weir/internal/azure/apiversion"
	"weir.dev/weir/internal/fault"
)

// version returns the api-version with which a resource is read.
func (d *documents) version(t target) string { return d.newer.Of(t.id.Type, t.id.String()) }

// newerVersion returns the api-version that a write has to have, as its rejection names it; empty if the error is
// no such rejection, or names none that is newer than what was sent.
func newerVersion(err error, sent string) string {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || answer.StatusCode != http.StatusBadRequest {
		return ""
	}
	if !slices.Contains(codesOf(answer.RawResponse), fault.CodeOlderVersion) {
		return ""
	}
	newest := ""
	for _, e := range errorsOf(answer.RawResponse) {
		newest = max(newest, apiversion.Newer(e.Message, sent))
	}
	return newest
}

// beginWith sends a write with a newer api-version, as an edit of what Azure shows with that. It needs no right but
// to read the resource: where the provider does not have the api-version the read is rejected, and rejected, which is
// why it is asked for, is returned. It sends one write, and does not return to begin.
func (d *documents) beginWith(ctx context.Context, r request, version string, rejected error) (taken, error) {
	shown, err := d.read(ctx, r.call.target, version)
	if err != nil {
		if answer, ok := errors.AsType[*azcore.ResponseError](err); ok && rejected != nil && lacksVersion(answer) {
			return taken{}, rejected
		}
		return taken{}, err
	}
	d.newer.Learn(r.call.id.String(), version)
	*r.origin = shown
	body, err := r.encoded()
	if err != nil {
		return taken{}, err
	}
	r.call = &call{op: r.call.op, target: r.call.target}
	return d.try(ctx, r, version, body)
}

// lacksVersion reports whether a resource provider rejects a request because it does not have its api-version.
func lacksVersion(answer *azcore.ResponseError) bool {
	return slices.ContainsFunc(codesOf(answer.RawResponse), func(code string) bool {
		return slices.Contains([]string{"NoRegisteredProviderFound", "InvalidApiVersionParameter", "InvalidResourceType"}, code)
	})
}
