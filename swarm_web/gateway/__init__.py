"""The nodes' websocket: accepts connections and answers messages; has no database models."""
