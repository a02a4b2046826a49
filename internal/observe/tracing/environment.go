// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// environment reads OpenTelemetry's variables. Errors contain no value that may be secret.
type environment func(string) string

// otlpVariable prefers the variable for traces to the one for all signals.
func (e environment) otlpVariable(name string) string {
	return cmp.Or(e("OTEL_EXPORTER_OTLP_TRACES_"+name), e("OTEL_EXPORTER_OTLP_"+name))
}

// isEnabled reports whether a collector is configured and tracing is not disabled.
func (e environment) isEnabled() bool {
	return e.otlpVariable("ENDPOINT") != "" && !strings.EqualFold(e("OTEL_SDK_DISABLED"), "true") && e("OTEL_TRACES_EXPORTER") != "none"
}

func (e environment) newClient() (*otlpClient, error) {
	if value := e("OTEL_TRACES_EXPORTER"); value != "" && value != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER=%.20q: want otlp, or none", value)
	}
	if value := e.otlpVariable("PROTOCOL"); value != "" && value != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL=%.20q: want http/protobuf, at port 4318 of most collectors", value)
	}
	if value := e.otlpVariable("COMPRESSION"); value != "" && value != "gzip" && value != "none" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_COMPRESSION=%.20q: want gzip, or none", value)
	}
	to, err := e.tracesURL()
	if err != nil {
		return nil, err
	}
	header, err := e.requestHeader()
	if err != nil {
		return nil, err
	}
	c := &otlpClient{url: to.String(), header: header, gzip: e.otlpVariable("COMPRESSION") == "gzip"}
	if c.gzip {
		header.Set("Content-Encoding", "gzip")
	}
	if c.http, err = e.newHTTPClient(); err != nil {
		return nil, err
	}
	return c, nil
}

func (e environment) tracesURL() (*url.URL, error) {
	u, err := url.Parse(e.otlpVariable("ENDPOINT"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" { // err would quote it
		return nil, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: want a URL such as https://collector.example:4318")
	}
	if e("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		u = u.JoinPath("v1", "traces")
	}
	return u, nil
}

// collectorURL returns the collector's URL for logs, without the path, which may contain a token.
func (e environment) collectorURL() string {
	u, err := e.tracesURL()
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func (e environment) requestHeader() (http.Header, error) {
	h := http.Header{"Content-Type": {"application/x-protobuf"}}
	for i, entry := range strings.Split(e.otlpVariable("HEADERS"), ",") {
		name, value, found := strings.Cut(entry, "=")
		value, err := url.PathUnescape(value)
		switch name = strings.TrimSpace(name); {
		case e.otlpVariable("HEADERS") == "":
		case !found || name == "" || err != nil || strings.ContainsAny(name, " \t\r\n\x00:") || strings.ContainsAny(value, "\r\n\x00"):
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: entry %d is not name=value, with %% and comma as %%25 and %%2C", i+1)
		default:
			h.Set(name, strings.TrimSpace(value))
		}
	}
	return h, nil
}

func (e environment) redactSecrets(text string) string {
	var secrets []string
	for entry := range strings.SplitSeq(e.otlpVariable("HEADERS"), ",") {
		_, value, _ := strings.Cut(entry, "=")
		plain, _ := url.PathUnescape(value)
		secrets = append(append(secrets, value, plain), strings.Fields(plain)...) // the scheme, such as Bearer, and the token
	}
	if u, err := e.tracesURL(); err == nil {
		password, _ := u.User.Password()
		secrets = append(secrets, u.User.String(), password, u.RawQuery)
		for part := range strings.SplitSeq(strings.TrimSuffix(u.EscapedPath(), "/v1/traces"), "/") {
			plain, _ := url.PathUnescape(part)
			secrets = append(secrets, part, plain)
		}
	}
	for _, s := range secrets {
		if s = strings.TrimSpace(s); len(s) >= 4 {
			text = strings.ReplaceAll(text, s, "REDACTED")
		}
	}
	return text
}

// defaultTimeout is the default timeout of a request; maxTimeout is its maximum.
const defaultTimeout, maxTimeout = 10 * time.Second, time.Minute

// newHTTPClient returns a client with its own connections. It follows no redirect, which would receive the headers.
func (e environment) newHTTPClient() (*http.Client, error) {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10}
	var err error
	if t.TLSClientConfig, err = e.tlsConfig(); err != nil {
		return nil, err
	}
	within := defaultTimeout
	if value := e.otlpVariable("TIMEOUT"); value != "" {
		ms, err := strconv.Atoi(value)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT=%.20q: want milliseconds", value)
		}
		within = min(time.Duration(min(ms, int(maxTimeout.Milliseconds())))*time.Millisecond, maxTimeout)
	}
	return &http.Client{
		Transport: t, Timeout: within,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

func (e environment) tlsConfig() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := e.otlpVariable("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file) //nolint:gosec // whoever sets the environment starts the process
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s holds no certificate in PEM", file)
		}
	}
	cert, key := e.otlpVariable("CLIENT_CERTIFICATE"), e.otlpVariable("CLIENT_KEY")
	if cert == "" && key == "" {
		return cfg, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY: %w", err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg, nil
}
