package zookeeper_test
import ("log/slog";"os")
func debugLog() *slog.Logger { if os.Getenv("ZKDEBUG")=="" {return nil}; return slog.New(slog.NewTextHandler(os.Stderr,nil)) }
