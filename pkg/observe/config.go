package observe

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Protocols of an exporter, by the names of Knative's config-observability.
const (
	ProtocolNone   = "none"
	ProtocolHTTP   = "http/protobuf"
	ProtocolGRPC   = "grpc"
	ProtocolStdout = "stdout"
)

// Tracing says where spans go. The zero value is off.
type Tracing struct {
	// Protocol is one of the constants above; "" is ProtocolNone.
	Protocol string
	// Endpoint is the URL that spans are posted to, path included, or the
	// address of a gRPC receiver.
	Endpoint string
	// Rate of the traces that are kept, from 0 to 1. As with Knative 1 keeps all,
	// also those whose sender keeps none, 0 none, and what is between does as the
	// sender does.
	Rate float64
}

// On says whether any span is to be sent.
func (t Tracing) On() bool { return t.Protocol != "" && t.Protocol != ProtocolNone && t.Rate > 0 }

// Metrics says where metrics go. The zero value is off.
type Metrics struct {
	// Protocol is ProtocolHTTP or ProtocolGRPC; "" is ProtocolNone.
	Protocol string
	// Endpoint is the URL that metrics are posted to, path included, or the
	// address of a gRPC receiver.
	Endpoint string
	// Interval between two pushes; 0 is OpenTelemetry's default, a minute.
	Interval time.Duration
}

// On says whether anything is to be pushed.
func (m Metrics) On() bool { return m.Protocol != "" && m.Protocol != ProtocolNone }

// Config is what is observed and where it goes.
type Config struct {
	Tracing Tracing
	Metrics Metrics
	// Runs is where runs send their spans. They may be in namespaces from which
	// another address is reached than from ours.
	Runs Tracing
	// Level of the log. The zero value is Info.
	Level slog.Level
}

// Keys of the ConfigMap config-observability. All but keyRuns are Knative's.
const (
	keyProtocol = "tracing-protocol"
	keyEndpoint = "tracing-endpoint"
	keyRate     = "tracing-sampling-rate"
	keyRuns     = "run-tracing-endpoint"

	keyMetricsProtocol = "metrics-protocol"
	keyMetricsEndpoint = "metrics-endpoint"
	keyMetricsInterval = "metrics-export-interval"
)

// Keys of the ConfigMap config-logging, which are Knative's.
const (
	keyLogger = "zap-logger-config"
	keyLevel  = "loglevel."
)

// Parse reads the data of the ConfigMaps config-observability and config-logging
// for the component of this name. Its error names the key that is wrong; what it
// returns then is off, at level Info.
func Parse(observability, logging map[string]string, component string) (Config, error) {
	var c Config
	var err error
	if c.Level, err = parseLevel(logging, component); err != nil {
		return Config{}, err
	}
	level := c.Level
	if c.Metrics, err = parseMetrics(observability); err != nil {
		return Config{Level: level}, err
	}
	if c.Tracing, err = parseTracing(observability); err != nil {
		return Config{Level: level}, err
	}
	c.Runs = c.Tracing
	switch runs := observability[keyRuns]; {
	case runs == ProtocolNone || c.Tracing.Protocol == ProtocolStdout:
		c.Runs = Tracing{}
	case runs != "" && !c.Tracing.On():
	case runs != "":
		if c.Runs.Endpoint, err = endpoint(runs); err != nil {
			return Config{Level: level}, fmt.Errorf("%s: %w", keyRuns, err)
		}
	}
	return c, nil
}

// Unknown says whether a key of one of the two ConfigMaps has no effect. One that
// Knative has and Updraft does not is unknown too.
func Unknown(configMap, key string) bool {
	if configMap == "config-logging" {
		return key != keyLogger && (!strings.HasPrefix(key, keyLevel) || key == keyLevel)
	}
	switch key {
	case keyProtocol, keyEndpoint, keyRate, keyRuns, keyMetricsProtocol, keyMetricsEndpoint, keyMetricsInterval:
		return false
	default:
		return true
	}
}

// protocolPrometheus is Knative's way to have metrics fetched.
const protocolPrometheus = "prometheus"

func parseMetrics(data map[string]string) (Metrics, error) {
	m := Metrics{Protocol: ProtocolNone, Endpoint: strings.TrimSpace(data[keyMetricsEndpoint])}
	if p, set := data[keyMetricsProtocol]; set {
		m.Protocol = strings.TrimSpace(p)
	}
	if raw, set := data[keyMetricsInterval]; set {
		var err error
		if m.Interval, err = time.ParseDuration(strings.TrimSpace(raw)); err != nil || m.Interval < 0 {
			return Metrics{}, fmt.Errorf("%s: %q is no duration such as 30s", keyMetricsInterval, raw)
		}
	}
	switch m.Protocol {
	case ProtocolHTTP, ProtocolGRPC:
		if m.Endpoint == "" {
			return Metrics{}, fmt.Errorf("%s: the protocol %s needs one", keyMetricsEndpoint, m.Protocol)
		}
		var err error
		if m.Endpoint, err = endpoint(m.Endpoint); err != nil {
			return Metrics{}, fmt.Errorf("%s: %w", keyMetricsEndpoint, err)
		}
	case ProtocolNone:
		if m.Endpoint != "" {
			return Metrics{}, fmt.Errorf("%s: the protocol %s has none", keyMetricsEndpoint, m.Protocol)
		}
	case protocolPrometheus:
		return Metrics{}, fmt.Errorf("%s: a function that has scaled to zero cannot be scraped: push to a collector by %s or %s, which Prometheus scrapes", keyMetricsProtocol, ProtocolHTTP, ProtocolGRPC)
	default:
		return Metrics{}, fmt.Errorf("%s: %q is none of %s, %s, %s", keyMetricsProtocol, m.Protocol, ProtocolNone, ProtocolHTTP, ProtocolGRPC)
	}
	return m, nil
}

func parseTracing(data map[string]string) (Tracing, error) {
	t := Tracing{Protocol: ProtocolNone}
	if p, set := data[keyProtocol]; set {
		t.Protocol = strings.TrimSpace(p)
	}
	raw := strings.TrimSpace(data[keyEndpoint])
	if rate, set := data[keyRate]; set {
		var err error
		if t.Rate, err = strconv.ParseFloat(strings.TrimSpace(rate), 64); err != nil || !(t.Rate >= 0 && t.Rate <= 1) {
			return Tracing{}, fmt.Errorf("%s: %q is no number from 0 to 1", keyRate, rate)
		}
	}
	switch t.Protocol {
	case ProtocolHTTP, ProtocolGRPC:
		if raw == "" {
			return Tracing{}, fmt.Errorf("%s: the protocol %s needs one", keyEndpoint, t.Protocol)
		}
		var err error
		if t.Endpoint, err = endpoint(raw); err != nil {
			return Tracing{}, fmt.Errorf("%s: %w", keyEndpoint, err)
		}
	case ProtocolNone, ProtocolStdout:
		if raw != "" {
			return Tracing{}, fmt.Errorf("%s: the protocol %s has none", keyEndpoint, t.Protocol)
		}
	default:
		return Tracing{}, fmt.Errorf("%s: %q is none of %s, %s, %s, %s", keyProtocol, t.Protocol, ProtocolNone, ProtocolHTTP, ProtocolGRPC, ProtocolStdout)
	}
	if t.Protocol == ProtocolStdout {
		t.Rate = 1 // as Knative does
	}
	return t, nil
}

// endpoint is a URL. One without a scheme is taken to be https, as with Knative.
func endpoint(raw string) (string, error) {
	if !strings.Contains(raw, "://") {
		raw = "https://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is no http URL", raw)
	}
	return raw, nil
}

// parseLevel is the level of a component, else that of all.
func parseLevel(data map[string]string, component string) (slog.Level, error) {
	level := slog.LevelInfo
	if raw := data[keyLogger]; strings.TrimSpace(raw) != "" {
		var logger struct {
			Level string `json:"level"`
		}
		if err := json.Unmarshal([]byte(raw), &logger); err != nil {
			return level, fmt.Errorf("%s: it is no JSON: %w", keyLogger, err)
		}
		var err error
		if level, err = levelOf(logger.Level); err != nil {
			return slog.LevelInfo, fmt.Errorf("%s: %w", keyLogger, err)
		}
	}
	if raw := data[keyLevel+component]; raw != "" {
		own, err := levelOf(raw)
		if err != nil {
			return level, fmt.Errorf("%s%s: %w", keyLevel, component, err)
		}
		level = own
	}
	return level, nil
}

// levelOf is the level that zap's comes closest to: it has more above error.
func levelOf(name string) (slog.Level, error) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "debug":
		return slog.LevelDebug, nil
	case "", "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error", "dpanic", "panic", "fatal":
		return slog.LevelError, nil
	default:
		return slog.LevelInfo, fmt.Errorf("%q is none of debug, info, warn, error", name)
	}
}

// Prefixes of the environment variables that a function has from its ConfigMaps:
// a key, as it is, comes after them.
const (
	PrefixObservability = "OBSERVABILITY_"
	PrefixLogging       = "LOGGING_"
)

// FromEnvironment are the data of a ConfigMap in an environment of KEY=VALUE.
func FromEnvironment(environ []string, prefix string) map[string]string {
	data := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if key, found := strings.CutPrefix(name, prefix); found && key != "_example" {
			data[key] = value
		}
	}
	return data
}
