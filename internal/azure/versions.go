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

func (d *documents) version(t target) string { return d.newer.Of(t.id.Type, t.id.String()) }

// newerVersion returns the api-version that a rejection requires; empty if there is none newer than
// sent.
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

// beginWith reads the resource with a newer api-version and writes it once. It needs only read
// permission. If the provider lacks the api-version, it returns rejected.
func (d *documents) beginWith(ctx context.Context, r request, version string, rejected error) (taken, error) {
	doc, err := d.read(ctx, r.call.target, version)
	if err != nil {
		if answer, ok := errors.AsType[*azcore.ResponseError](err); ok && rejected != nil && lacksVersion(answer) {
			return taken{}, rejected
		}
		return taken{}, err
	}
	d.newer.Learn(r.call.id.String(), version)
	*r.origin = doc
	body, err := r.encoded()
	if err != nil {
		return taken{}, err
	}
	r.call = &call{op: r.call.op, target: r.call.target}
	return d.try(ctx, r, version, body)
}

func lacksVersion(answer *azcore.ResponseError) bool {
	return slices.ContainsFunc(codesOf(answer.RawResponse), func(code string) bool {
		return slices.Contains([]string{"NoRegisteredProviderFound", "InvalidApiVersionParameter", "InvalidResourceType"}, code)
	})
}
