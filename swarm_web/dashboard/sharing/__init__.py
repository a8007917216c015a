"""What other sites can show: badges, preview cards and the feed of closed rounds.

All texts are in English, because a cached badge or card is shown to readers of many languages.
"""
