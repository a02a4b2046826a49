// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

type credentials struct {
	kind     string
	notAfter time.Time // of the client certificate; zero if unknown
}

func credentialsOf(cfg *rest.Config) credentials {
	switch {
	case cfg.BearerToken != "":
		return credentials{kind: "the token"}
	case len(cfg.CertData) > 0:
		c := credentials{kind: "the client certificate"}
		if block, _ := pem.Decode(cfg.CertData); block != nil {
			if leaf, err := x509.ParseCertificate(block.Bytes); err == nil {
				c.notAfter = leaf.NotAfter
			}
		}
		return c
	case cfg.Username != "":
		return credentials{kind: "the user name and password"}
	}
	return credentials{}
}

func (c credentials) addHint(err error, now time.Time) error {
	if hint := c.hintFor(err, now); hint != "" {
		return hintError{err, hint}
	}
	return err
}

func (c credentials) hintFor(err error, now time.Time) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "certificate-authority-data of the kubeconfig is not the authority of the target's certificate"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "renew the certificate of the target's API server, or correct the clock of this cluster"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "server of the kubeconfig is no name of the target's certificate: correct it, or set tls-server-name"
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok || strings.Contains(err.Error(), "remote error: tls: ") {
		return c.rejectedMessage("the target rejects", now)
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	switch {
	case !ok:
		return ""
	case status.ErrStatus.Code == http.StatusUnauthorized:
		return "401 Unauthorized: " + c.rejectedMessage("the target does not accept", now)
	case status.ErrStatus.Code == http.StatusForbidden:
		return "403 Forbidden: the target authenticated the user, who lacks the permission"
	}
	return ""
}

func (c credentials) rejectedMessage(action string, now time.Time) string {
	switch {
	case c.kind == "":
		return "the kubeconfig has no token, client certificate or password"
	case !c.notAfter.IsZero() && now.After(c.notAfter):
		return fmt.Sprintf("%s %s, which expired at %s", action, c.kind, c.notAfter.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s %s: it may be of another cluster, revoked or expired", action, c.kind)
}

type hintError struct {
	err  error
	hint string
}

func (e hintError) Error() string { return e.err.Error() + " (" + e.hint + ")" }

func (e hintError) Unwrap() error { return e.err }

// checkKubernetes rejects responses that no API server sends: an HTML page or a redirect.
func checkKubernetes(res *http.Response) error {
	status := fmt.Sprintf("%d %s", res.StatusCode, http.StatusText(res.StatusCode))
	if res.StatusCode >= 300 && res.StatusCode < 400 && res.StatusCode != http.StatusNotModified {
		to := "another address"
		if u, err := url.Parse(res.Header.Get("Location")); err == nil && u.Host != "" {
			to = u.Host
		}
		return fmt.Errorf("the target responds %s and redirects to %s, which is not followed: server of the kubeconfig has to be the API server itself", status, to)
	}
	if kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); strings.EqualFold(strings.TrimSpace(kind), "text/html") {
		return fmt.Errorf("the target responds %s with an HTML page, which no API server does: a proxy or a login page is in front of it, or server of the kubeconfig is wrong", status)
	}
	return nil
}
